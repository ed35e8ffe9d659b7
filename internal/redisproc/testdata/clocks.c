// Prints what the clocks of a process show, in nanoseconds, and what the kernel
// says of the monotonic ones before and after.
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long long ns(struct timespec t) { return t.tv_sec * 1000000000LL + t.tv_nsec; }

static long long shown(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return ns(t);
}

static long long kernel(clockid_t clock)
{
	struct timespec t;
	syscall(SYS_clock_gettime, clock, &t);
	return ns(t);
}

int main(void)
{
	struct timeval tv;
	gettimeofday(&tv, NULL);
	printf("realtime %lld\n", shown(CLOCK_REALTIME));
	printf("coarse %lld\n", shown(CLOCK_REALTIME_COARSE));
	printf("gettimeofday %lld\n", tv.tv_sec * 1000000000LL + tv.tv_usec * 1000LL);
	printf("time %lld\n", time(NULL) * 1000000000LL);
	long long monotonic = kernel(CLOCK_MONOTONIC), boot = kernel(CLOCK_BOOTTIME);
	printf("monotonic %lld %lld", monotonic, shown(CLOCK_MONOTONIC));
	printf(" %lld\n", kernel(CLOCK_MONOTONIC));
	printf("boot %lld %lld", boot, shown(CLOCK_BOOTTIME));
	printf(" %lld\n", kernel(CLOCK_BOOTTIME));
	return 0;
}
