//go:build ignore

// Preloaded into a server, this moves the wall clock that the process sees, as
// the page that QUORUMLOCK_CLOCK names says. Go builds it no more than its first
// line lets it; skew.go does.
//
// A server's keys and its uptime go by the wall clock: clock_gettime of
// CLOCK_REALTIME, gettimeofday and time. Its own timers go by CLOCK_MONOTONIC,
// which nobody can set, so that is left alone. The kernel is asked without the C
// library: an allocator may want the time before that is ready.

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

_Static_assert(sizeof(long) == 8, "struct timespec is the kernel's");

// From the moment when the real clock showed real, this one shows shown and runs
// at rate. Nanoseconds since 1970.
struct setting {
	int64_t real, shown;
	double rate;
};

// A change is written to a setting that nobody reads, and then made the current
// one, so that half of it is never seen.
static const struct page {
	uint8_t current;
	struct setting settings[128] __attribute__((aligned(64)));
} *page;

__attribute__((constructor)) static void map_page(void)
{
	const char *path = getenv("QUORUMLOCK_CLOCK");
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (file < 0)
		return;
	void *mapped = mmap(NULL, sizeof(*page), PROT_READ, MAP_SHARED, file, 0);
	close(file);
	if (mapped != MAP_FAILED)
		page = mapped;
}

static int64_t now(void)
{
	struct timespec real;
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &real);
	int64_t t = real.tv_sec * SECOND + real.tv_nsec;
	if (page) {
		const struct setting *s = &page->settings[__atomic_load_n(&page->current, __ATOMIC_ACQUIRE)];
		t = s->shown + (int64_t)((double)(t - s->real) * s->rate);
	}
	return t;
}

int clock_gettime(clockid_t clock, struct timespec *at)
{
	if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
		return syscall(SYS_clock_gettime, clock, at);
	int64_t t = now();
	at->tv_sec = t / SECOND;
	at->tv_nsec = t % SECOND;
	return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
	(void)zone;
	int64_t t = now();
	at->tv_sec = t / SECOND;
	at->tv_usec = t % SECOND / 1000;
	return 0;
}

time_t time(time_t *at)
{
	time_t t = now() / SECOND;
	if (at)
		*at = t;
	return t;
}
