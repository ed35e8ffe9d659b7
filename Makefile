# Every target works on all modules of the workspace: `work` is go's pattern
# for them, and with GOWORK=off it means the root module alone.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.1

# More for go test: make test ARGS='-run Release -v'
ARGS =

# Which mutants are tried: make mutants MUTANTS='M03 M26'. Empty means all.
MUTANTS =

# Which benchmarks make bench runs, and how often.
BENCH = .
COUNT = 10

# How many schedules make soak runs, and the seed of the first: a million take
# a quarter of an hour on two processors.
SEEDS = 1000000
START = 1

.PHONY: help test images bench soak mutants tidy lint imports

help: ## Say what there is to make (this)
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' Makefile

test: ## Run everything this machine can run; say what was left out
	@sh .ci/test $(ARGS)

images: ## Build images of Redis and Valkey for the tests on containers, on a Debian machine
	@bash test/cluster/image/build bookworm redis-server quorumlock-test/redis:7.0
	@bash test/cluster/image/build trixie redis-server quorumlock-test/redis:8.0
	@bash test/cluster/image/build sid valkey-server quorumlock-test/valkey:9

bench: ## Run the benchmarks on main and on this tree, and have benchstat compare: make bench BENCH=… COUNT=…
	@sh .ci/bench $(COUNT) '$(BENCH)' $(ARGS)

soak: ## Run the simulator for long: make soak SEEDS=… START=…
	@sh .ci/soak $(SEEDS) $(START)

mutants: ## Break the library in known ways, have tests notice, and write docs/mutations.md
	go run ./test/mutants -write $(MUTANTS)

tidy: ## Tidy every module; a tidy tree stays as it is
	@sh .ci/tidy

lint: imports cited ## gofmt, go vet, staticcheck, the import rules and the tests that docs cite
	@files=$$(gofmt -l .) && if [ -n "$$files" ]; then echo "gofmt would change:" $$files; exit 1; fi
	go vet work
	go run $(STATICCHECK) work

imports: ## Check which package may import which
	@sh .ci/imports

cited: ## Check that the tests which the documentation cites are there
	@sh .ci/cited
