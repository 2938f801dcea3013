# Everything a contributor or a CI machine runs. Needs Go, git and make (GNU Make 3.81 or newer), and Chromium for
# the suite ui; only `make image` needs Docker. `make` alone prints the list.

# Static binaries and no C compiler. Set CGO_ENABLED=1 to use the race detector or the system's resolver.
CGO_ENABLED ?= 0
export CGO_ENABLED

# Without debugging information (DWARF), with one thread for each package (two packages are compiled at a time), and with fewer garbage
# collections, the compiler needs a third less time. test/assets passes the same flags, so that each package is compiled once.
export GOFLAGS := $(strip $(GOFLAGS) '-gcflags=all=-dwarf=false -c=1')
GO_BUILD := GOGC=200 go build

SHELL   := /bin/bash
BIN     := $(CURDIR)/bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
IMAGE   ?= localhost/scute:$(VERSION)
GROUP   ?=

# For make soak: how long faults happen, the seed that chooses them (by default ROTATION if it is a number, otherwise random), and the kinds of
# faults (by default all).
DURATION ?= 5m
SEED     ?= $(filter-out all,$(ROTATION))
FAULTS   ?=

# The groups of benchmarks that the module test/ measures on the real stack.
STACK_GROUPS := move remediation

# How long the tests of one package may take: of the root module, and on the real stack. The latter depends on whether the long matrices are run
# whole.
TEST_TIMEOUT     ?= 10m
TEST_E2E_TIMEOUT ?= $(if $(filter all,$(ROTATION)),90m,25m)

# SUITE selects suites by name or by group (checks, promises, stack). LANES is how many suites on the real stack run at a time: two by default, and
# one for make test-repeat. ROTATION is the share of the long matrices that runs: a number, or all. By default it is the share of the day.
SUITE    ?=
LANES    ?=
ROTATION ?=
N        ?= 10
BURN     ?= 0
export ROTATION

# Property tests try random cases, and the same ones for the same seed, so that no change fails for an unrelated reason. CHECKS is how many
# other cases of each property make test-random tries.
RAPID_SEED ?= 1
CHECKS     ?= 2000
RANDOM_PACKAGES = $(sort $(dir $(shell git grep -l pgregory.net/rapid -- '*_test.go' ':!test/' ':!tools/')))

LDFLAGS := -s -w -X main.version=$(VERSION)

GOLANGCI_LINT  := $(BIN)/golangci-lint
CONTROLLER_GEN := $(BIN)/controller-gen
HELM           := $(BIN)/helm

# suites ARGUMENTS builds tools/suites and runs it with exec, so that it receives signals.
define suites
@mkdir -p "$(BIN)" && cd tools && go build -o "$(BIN)/suites" ./suites
@MAKE="$(MAKE)" exec "$(BIN)/suites" -root "$(CURDIR)" -lanes $(or $(LANES),2) -timeout $(TEST_E2E_TIMEOUT) $(1)
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

##@ Use

.PHONY: help
help: ## Print this list.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z][a-z-]*:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo

.PHONY: build
build: scutectl ## Build scuted, scutectl and kubectl-scute into bin/.
	$(GO_BUILD) -ldflags '$(LDFLAGS)' -o "$(BIN)/scuted" ./cmd/daemon

.PHONY: scutectl
scutectl: ## Build scutectl and kubectl-scute into bin/.
	@mkdir -p "$(BIN)"
	$(GO_BUILD) $(if $(TAGS),-tags '$(TAGS)') -ldflags '$(LDFLAGS)' -o "$(BIN)/scutectl" ./cmd/ctl
	@ln -sf scutectl "$(BIN)/kubectl-scute"

.PHONY: taste
taste: TAGS = taste
taste: scutectl ## Build scutectl without the task kind Providers, so that clusterctl need not be compiled.

.PHONY: demo
demo: ## Move a cluster between two real management clusters, killing scuted on the way.
	@cd test && go run ./cmd/build demo && exec ../bin/test/demo

.PHONY: ui-demo
ui-demo: build ## Run the examples, and show them with recorded moves and remediations in scutectl ui; no cluster needed.
	@cd test && go build -o "$(BIN)/uidemo" ./cmd/uidemo && exec "$(BIN)/uidemo" "$(BIN)/scutectl"

.PHONY: ui-pictures
ui-pictures: ## Take the pictures of docs/ui.md, light and dark, in Chromium.
	cd test && go test ./ui -count=1 -run '^TestPictures$$' -args pictures "$(CURDIR)/docs/images"

.PHONY: image
image: ## Build the container image (IMAGE=name:tag, GOARCH=arm64 for another machine). Needs Docker.
	@mkdir -p "$(BIN)/image"
	GOOS=linux go build -trimpath -ldflags '$(LDFLAGS)' -o "$(BIN)/image/" ./cmd/daemon ./cmd/ctl
	@cd "$(BIN)/image" && mv daemon scuted && mv ctl scutectl
	docker build -f Dockerfile -t $(IMAGE) "$(BIN)/image"

##@ Check

.PHONY: soak
soak: testbed ## Play random faults on the real stack (DURATION=5m SEED=n FAULTS=kind,kind) and check what must hold.
	cd test && go run ./cmd/soak -duration $(DURATION) $(if $(SEED),-seed $(SEED)) $(if $(FAULTS),-faults $(FAULTS))

# The tests of the pages need a browser. `make test` finds out before it builds anything.
.PHONY: chromium
chromium:
	@command -v chromium >/dev/null || { echo "the tests of the pages need Chromium: install it (Debian: apt-get install chromium), \
	or choose other suites, for example make $(MAKECMDGOALS) SUITE=\"unit move\"" >&2; exit 1; }

.PHONY: test
test: $(if $(SUITE),,chromium) ## Unit tests, and one test of each promise on the real stack.
	@cd test && go run ./cmd/build stack
	$(call suites,$(or $(SUITE),unit promises))

.PHONY: test-all
test-all: $(if $(SUITE),,chromium) ## Every check and suite, with the day's share of the long matrices (ROTATION=3 for another), and a table of times.
	$(call suites,$(or $(SUITE),checks build promises stack))

.PHONY: test-full
test-full: ROTATION = all
test-full: $(if $(SUITE),,chromium) ## `make test-all` with the whole of every matrix.
	$(call suites,$(or $(SUITE),checks build promises stack))

.PHONY: test-repeat
test-repeat: testbed ## Run suites N times (SUITE="e2e unit" N=10), LANES=1 at a time, while BURN=2 processes each burn a core.
	$(call suites,-lanes $(or $(LANES),1) -repeat $(N) -burn $(BURN) $(or $(SUITE),unit stack))

.PHONY: ci
ci: chromium ## What CI runs: `make test-all`, then the demo and five minutes of random faults.
	@$(MAKE) --no-print-directory test-vuln
	$(call suites,checks build promises stack demo soak)

# `go test` does not run vet, which would analyze every dependency; `make lint` does. Both halves run at once, because the tests of the log mostly
# wait.
.PHONY: test-unit unit-properties unit-others
test-unit: ## Unit tests of the root module.
	@$(MAKE) --no-print-directory -j2 unit-properties unit-others
unit-properties:
	go test -vet=off -timeout $(TEST_TIMEOUT) $(RANDOM_PACKAGES:%=./%) -rapid.seed=$(RAPID_SEED)
unit-others:
	go test -vet=off -timeout $(TEST_TIMEOUT) $$(go list ./... | grep -vxFf <(go list $(RANDOM_PACKAGES:%=./%)))

.PHONY: test-random
test-random: ## Try other random cases of every property (CHECKS=2000 of each).
	go test -count=1 -timeout 0 $(RANDOM_PACKAGES:%=./%) -rapid.checks=$(CHECKS)

.PHONY: test-worlds
test-worlds: ## Search small clusters of the remediator exhaustively: FAULTS=2 at any moment, DEATHS=1 of the process in a turn (-1: any number).
	go test -count=1 -timeout 0 -v ./remediator -run TestEverySmallWorld -worlds.faults=$(or $(FAULTS),2) -worlds.deaths=$(or $(DEATHS),1)

.PHONY: test-chart
test-chart: $(HELM) ## Lint and render the Helm chart, and check what it renders.
	"$(HELM)" lint --strict --quiet charts/scute
	cd tools && go test -count=1 ./chart/...

.PHONY: test-docs
test-docs: ## Check the documentation against the tree: dependencies, links, names, and the vocabulary.
	cd tools && go test -count=1 ./docs/...

.PHONY: test-e2e
test-e2e: testbed ## The suites on the real stack (module test/): moves, faults, kills.
	$(call suites,$(or $(SUITE),stack))

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Lint all modules, and test that the linter still reports each forbidden import.
	"$(GOLANGCI_LINT)" run ./...
	cd test && "$(GOLANGCI_LINT)" run --config ../.golangci.yml ./...
	cd tools && "$(GOLANGCI_LINT)" run --config ../.golangci.yml ./... && go test -count=1 ./walls/...

.PHONY: format
format: $(GOLANGCI_LINT) ## Format the sources of all modules.
	"$(GOLANGCI_LINT)" fmt ./...
	cd test && "$(GOLANGCI_LINT)" fmt --config ../.golangci.yml ./...
	cd tools && "$(GOLANGCI_LINT)" fmt --config ../.golangci.yml ./...

.PHONY: comparison
comparison: ROTATION = all
comparison: testbed ## Play faults with scute and without it, and write the table of docs/comparison.md.
	cd test && go test ./remediation -count=1 -timeout $(TEST_E2E_TIMEOUT) -run '^TestComparison$$' -comparison "$(CURDIR)/docs/comparison.md"

.PHONY: comparison-move
comparison-move: ROTATION = all
comparison-move: testbed ## Kill moves of clusterctl and of scute, and write the table of docs/move.md.
	cd test && go test ./crash -count=1 -timeout $(TEST_E2E_TIMEOUT) -run '^TestClusterctlCrashes$$' -comparison "$(CURDIR)/docs/move.md"

.PHONY: bench
bench: ## Print the benchmark figures, one per line; GROUP=log for one group. GROUP=move and GROUP=remediation build and use the test bed.
	@[ -n "$(GROUP)" ] && [ -z "$(filter-out $(STACK_GROUPS),$(GROUP))" ] || { cd test && go run ./cmd/logbench $(filter-out $(STACK_GROUPS),$(GROUP)); }
	@[ -n "$(GROUP)" ] && [ -z "$(filter $(STACK_GROUPS),$(GROUP))" ] || { cd test && go run ./cmd/bench $(BENCHFLAGS) $(filter $(STACK_GROUPS),$(GROUP)); }

##@ Make

.PHONY: house
house: ## Print the lines of production code by folder, unused exports, imports of a higher floor, and the length of the walks.
	cd tools && go run ./house "$(CURDIR)"

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Generate deep copies, CRDs, and the pages and lists that come from code.
	@./tools/generate "$(CONTROLLER_GEN)" .

# The database of known vulnerabilities: https://vuln.go.dev, or file:///DIR of a copy of it.
VULNDB ?=

.PHONY: test-vuln
test-vuln: ## Fail if scute reaches a known vulnerability; skipped without VULNDB=https://vuln.go.dev.
ifeq ($(VULNDB),)
	@echo "SKIPPED: known vulnerabilities were not looked for: give a database, VULNDB=https://vuln.go.dev or file:///DIR" >&2
else
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 -db "$(VULNDB)" ./...
endif

.PHONY: test-generated
test-generated: $(CONTROLLER_GEN) ## Fail when a generated file is not what `make generate` would write.
	@./tools/generate "$(CONTROLLER_GEN)" --check

# Builds the programs that the suites on the real stack run and the packages that they import, so that no suite's time includes compiling them.
.PHONY: test-build
test-build: testbed
	cd test && go build ./...

.PHONY: testbed
testbed: ## Build the programs that the suites on the real stack run: scute's, kube-apiserver, etcd and others.
	@cd test && go run ./cmd/build all

.PHONY: cold
cold: ## Measure the README's commands as on a fresh machine, with empty caches: PARTS="taste demo test".
	@tools/cold $(PARTS)

.PHONY: clean
clean: ## Remove what was built, the test bed's binaries included.
	rm -rf "$(BIN)" test/.run

# The tools are pinned in tools/go.mod and built once for each change of it.
$(GOLANGCI_LINT): tools/go.mod tools/go.sum
	@mkdir -p "$(BIN)" && echo "building golangci-lint (minutes, once)" >&2
	cd tools && go build -o "$@" github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(CONTROLLER_GEN): tools/go.mod tools/go.sum
	@mkdir -p "$(BIN)" && echo "building controller-gen (once)" >&2
	cd tools && go build -o "$@" sigs.k8s.io/controller-tools/cmd/controller-gen

$(HELM): tools/go.mod tools/go.sum
	@mkdir -p "$(BIN)" && echo "building helm (minutes, once)" >&2
	cd tools && go build -o "$@" helm.sh/helm/v4/cmd/helm
