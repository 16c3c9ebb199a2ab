# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
SHELL := bash
.DELETE_ON_ERROR:

BIN     := bin
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
# The race detector needs a C compiler. It leaves out the instructions of SQLite, which is C that was translated: they touch
# memory of its own, which the detector does not watch, and take six times as long with it. Its locks are Go's, and watched.
RACE    := $(shell command -v gcc >/dev/null && [ "$$(go env CGO_ENABLED)" = 1 ] && echo -race -gcflags=modernc.org/sqlite/lib=-race=false -gcflags=modernc.org/libc/...=-race=false)

.PHONY: help
help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

.PHONY: setup
setup: ## install what is missing on this machine
	@scripts/setup.sh

.PHONY: setup-tests
setup-tests:
	@scripts/setup.sh --tests

.PHONY: setup-bench
setup-bench:
	@scripts/setup.sh --bench

.PHONY: build
build: $(BIN)/cellblock $(BIN)/cellblock-shim ## the two binaries, into bin/

# Go knows best what has changed, files that are embedded included.
.PHONY: $(BIN)/cellblock $(BIN)/cellblock-shim
$(BIN)/cellblock:
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./cmd/cellblock

$(BIN)/cellblock-shim:
	CGO_ENABLED=0 GOOS=linux go build -trimpath -ldflags '-s -w' -o $@ ./cmd/cellblock-shim

.PHONY: demo
demo: setup build ## a data-science session through a real MCP client
	@scripts/demo.sh

.PHONY: run
run: setup build ## the server, in dev mode, on 127.0.0.1:8787
	$(BIN)/cellblock serve

.PHONY: image
image: build ## the images that kernels run in, with the engine that is here; TARGETS="python bash r", or all
	@scripts/image.sh $(TARGETS)

.PHONY: server-image
server-image: ## the image of the server, cellblock:latest, which compose.yaml runs
	@scripts/server-image.sh

.PHONY: dist
dist: ## archives for all platforms, in dist/; PLATFORMS=linux/amd64 for one alone
	@scripts/dist.sh

.PHONY: kernels
kernels: ## the kernels of ours for the sandbox, where this user's Jupyter has its own; KERNELS="bash csharp" for some alone
	@scripts/kernels.sh $(KERNELS)

.PHONY: test
# Not cached: what the tests build and start is no part of what Go looks at. Those that take longest begin first.
PACKAGES := ./e2e ./kernels/docker ./sessions ./kernels/local ./kernels/shim ./mcpserver ./...
# Three packages and three tests of one at once, whatever the processors: most of them wait for kernels and engines. Nobody
# debugs these programs: without tables for that, linking the fifty of them takes two thirds of the time.
TESTARGS := $(RACE) -ldflags='-s -w' -p 3 -parallel 3 -vet=off -count=1 -timeout 40m
# These files are no part of a build with the race detector: it allocates, too, and takes ten times as long for what is large.
UNRACED = $(sort $(dir $(shell grep -rl --include='*_test.go' --exclude-dir='.?*' '^//go:build .*!race' .)))
tested = $(if $(RERUN),scripts/test-again.sh '$(1)' $(2),go test $(2) $(1)) # packages, and how
test: setup-tests build ## every test that can run here; what cannot is named. RERUN=1, as in the gate: what fails is run once more
	go vet $(RACE) ./...
	$(if $(RACE),$(call tested,$(UNRACED),-run=^TestUnraced))
	$(call tested,$(PACKAGES),$(TESTARGS))

.PHONY: race
race: ## only the tests, with the race detector
	@[ -n '$(RACE)' ] || { echo 'there is no race detector without gcc: apt-get install gcc libc6-dev, and CGO_ENABLED=1' >&2; exit 1; }
	go test $(RACE) ./...

.PHONY: e2e
e2e: setup-tests build ## only the end-to-end tests
	go test $(RACE) -count=1 -v ./e2e/...

.PHONY: quota
quota: ## the tests of workspaces' quotas, in a Linux of their own that has them
	scripts/quota.sh

.PHONY: soak
soak: setup build ## 20 sessions of 200 mixed cells at once, each output looked at
	CELLBLOCK_SOAK=full go test -count=1 -v -timeout 30m ./e2e/soak

.PHONY: test-escape
test-escape: setup build ## hostile cells try to get out, on every runtime that is here; prints what became of each
	CELLBLOCK_ESCAPE=full go test -count=1 -v -timeout 60m ./e2e/escape

.PHONY: chaos
# It is not in make test: it stops an engine, which others would miss.
chaos: setup build ## kernels, servers, engine, disk and clock fail under sessions that work; CELLBLOCK_CHAOS=full for long
	CELLBLOCK_CHAOS=$${CELLBLOCK_CHAOS:-short} go test -count=1 -v -timeout 60m ./e2e/chaos

.PHONY: screenshots
screenshots: setup ## every page of the viewer, light and dark, as on a desk and on a phone, into OUT (default screenshots/)
	@mkdir -p $(or $(OUT),screenshots)
	CELLBLOCK_PICTURES=$(abspath $(or $(OUT),screenshots)) go test -count=1 -run TestPictures ./e2e/browser

.PHONY: pictures
pictures: setup ## the pictures of the README, into docs/pictures
	@mkdir -p docs/pictures
	CELLBLOCK_PICTURES=$(CURDIR)/docs/pictures CELLBLOCK_PICTURES_ONLY='sessions-light-desktop session-dark-desktop conversation-light' go test -count=1 -run 'TestPictures|TestCellsInAConversation' ./e2e/browser

.PHONY: bench
bench: setup-bench build ## ours beside others', as ratios in one run; ROWS=pool,idle for some alone, QUICK=1, MARKDOWN=file, JSON=file
	@go build -o $(BIN)/bench ./e2e/bench # not go run, which leaves it alone when make is ended
	@exec $(BIN)/bench -rows '$(ROWS)' -markdown '$(MARKDOWN)' -json '$(JSON)' $(if $(QUICK),-quick)

.PHONY: load
load: ## sessions with mixed work on the server of DATA=folder: LOAD="-sessions 50 -for 10m", or LOAD=-find for how many it holds
	@go run ./e2e/load $(if $(DATA),-data-dir '$(DATA)') $(LOAD)

.PHONY: fuzz
fuzz: ## every fuzzer, a minute each; FUZZTIME=10s, FUZZ=Parse for those with that in their name
	@scripts/fuzz.sh

.PHONY: cover
# Without engines and real kernels, and so the same on every machine: what those run is in CONTRIBUTING.md.
cover: setup ## what part of each package its own tests run, in a few minutes
	@env -u CELLBLOCK_TEST_DOCKER_HOST -u CELLBLOCK_TEST_PODMAN_HOST go test -short -count=1 -cover -vet=off -ldflags=-s \
		$$(go list ./... | grep -vE '/(e2e|examples)(/|$$)') | tee >(grep -E '^(---|FAIL)' >&2) | \
		sed -nE 's/^(ok)?[[:space:]]+([^[:space:]]+).*coverage: ([0-9.]+%).*/\3\t\2/p' | sort -n; exit $${PIPESTATUS[0]}

.PHONY: fmt
fmt: ## format the code
	gofmt -w $$(git ls-files '*.go')

.PHONY: lint
lint: ## static analysis
	@scripts/lint.sh

.PHONY: clean
clean: ; rm -rf $(BIN) .cache demo-output dist screenshots ## remove what was built
