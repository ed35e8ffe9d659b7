# Every target works on all modules of the workspace: `work` is go's pattern
# for them, and with GOWORK=off it means the root module alone.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.1

# More for go test: make test ARGS='-run Release -v'
ARGS =

.PHONY: help test bench tidy lint imports

help: ## Say what there is to make (this)
	@sed -n 's/^\([a-z]*\):.*## /make \1	/p' Makefile

test: ## Run everything this machine can run; say what was left out
	@sh .ci/test $(ARGS)

bench: ## Run the benchmarks
	go test -run '^$$' -bench . -benchmem $(ARGS) work

tidy: ## Tidy every module; a tidy tree stays as it is
	@sh .ci/tidy

lint: imports ## gofmt, go vet, staticcheck and the import rules
	@files=$$(gofmt -l .) && if [ -n "$$files" ]; then echo "gofmt would change:" $$files; exit 1; fi
	go vet work
	go run $(STATICCHECK) work

imports: ## Check which package may import which
	@sh .ci/imports
