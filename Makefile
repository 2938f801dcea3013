# Everything a contributor or a CI machine runs. Needs Go, git and make (GNU Make 3.81 or newer), and Chromium for
# the suite ui; only `make image` needs Docker. `make` alone prints the list.

# Static binaries and no C compiler. Set CGO_ENABLED=1 to use the race detector or the system's resolver.
CGO_ENABLED ?= 0
export CGO_ENABLED

# No debugger reads what is built here, and the compiler takes a tenth of its time to write for one. test/assets has the same flag, so that
# a package is compiled once.
export GOFLAGS := $(strip $(GOFLAGS) -gcflags=all=-dwarf=false)

SHELL   := /bin/bash
BIN     := $(CURDIR)/bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
IMAGE   ?= localhost/scute:$(VERSION)
GROUP   ?=

# Of make soak: how long faults happen, which ones (the same for the same seed; that of ROTATION, or else a random one), and of
# which kinds.
DURATION ?= 5m
SEED     ?= $(filter-out all,$(ROTATION))
FAULTS   ?=

# The groups that are measured on the real stack, by the module test/.
STACK_GROUPS := move remediation

# How long all tests of one package may take: the root's packages, and the suites on the real stack, with a share of the long matrices
# and with the whole of them.
TEST_TIMEOUT     ?= 10m
TEST_E2E_TIMEOUT ?= $(if $(filter all,$(ROTATION)),90m,25m)

# SUITE names the suites that run, themselves or by their group (checks, stack); LANES of them share the machine where they are
# on the real stack: two, and one where they are repeated. ROTATION is the share that is taken of the long matrices: a number, or all. Without it, that of the day.
SUITE    ?=
LANES    ?=
ROTATION ?=
N        ?= 10
BURN     ?= 0
export ROTATION

# Tests of properties take their cases at random: the same cases for the same seed, so that no change is refused for what it has
# no part in. CHECKS is how many other cases of each property make test-random tries.
RAPID_SEED ?= 1
CHECKS     ?= 2000
RANDOM_PACKAGES = $(sort $(dir $(shell git grep -l pgregory.net/rapid -- '*_test.go')))

LDFLAGS := -s -w -X main.version=$(VERSION)

GOLANGCI_LINT  := $(BIN)/golangci-lint
CONTROLLER_GEN := $(BIN)/controller-gen
HELM           := $(BIN)/helm

# suites ARGUMENTS runs tools/suites. It is built first and then takes the place of the shell: a signal reaches it.
define suites
@mkdir -p "$(BIN)" && cd tools && go build -o "$(BIN)/suites" ./suites
@MAKE="$(MAKE)" exec "$(BIN)/suites" -root "$(CURDIR)" -lanes $(or $(LANES),2) -timeout $(TEST_E2E_TIMEOUT) $(1)
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:

##@ Use

.PHONY: help
help: ## This list.
	@awk 'BEGIN { FS = ":.*## " } \
		/^##@/ { printf "\n%s\n", substr($$0, 5) } \
		/^[a-z][a-z-]*:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo

.PHONY: build
build: scutectl ## Build scuted, scutectl and kubectl-scute into bin/.
	go build -ldflags '$(LDFLAGS)' -o "$(BIN)/scuted" ./cmd/daemon

.PHONY: scutectl
scutectl: ## Build scutectl and kubectl-scute into bin/.
	@mkdir -p "$(BIN)"
	go build $(if $(TAGS),-tags '$(TAGS)') -ldflags '$(LDFLAGS)' -o "$(BIN)/scutectl" ./cmd/ctl
	@ln -sf scutectl "$(BIN)/kubectl-scute"

.PHONY: taste
taste: TAGS = taste
taste: scutectl ## Build scutectl for a first taste: without the kind Providers, for which it would compile clusterctl.

.PHONY: demo
demo: ## Move a cluster between two real management clusters, killing scuted on the way.
	@cd test && go run ./cmd/build demo && exec ../bin/test/demo

.PHONY: ui-demo
ui-demo: build ## Show with scutectl ui what the examples, and moves and remediations of real clusters, came to; without a cluster.
	@cd test && go build -o "$(BIN)/uidemo" ./cmd/uidemo && exec "$(BIN)/uidemo" "$(BIN)/scutectl"

.PHONY: ui-pictures
ui-pictures: ## Take the pictures of docs/ui.md, light and dark, in Chromium.
	cd test && go test ./ui -count=1 -run '^TestPictures$$' -args pictures "$(CURDIR)/docs/images"

.PHONY: image
image: ## Build the container image (IMAGE=name:tag). Needs Docker.
	docker build --build-arg VERSION=$(VERSION) -t $(IMAGE) .

##@ Check

.PHONY: soak
soak: testbed ## Play random faults on the real stack (DURATION=5m SEED=n FAULTS=kind,kind) and check what must hold.
	cd test && go run ./cmd/soak -duration $(DURATION) $(if $(SEED),-seed $(SEED)) $(if $(FAULTS),-faults $(FAULTS))

.PHONY: test
test: ## Unit tests, and one test of each promise on the real stack.
	@cd test && go run ./cmd/build stack
	$(call suites,$(or $(SUITE),unit promises))

.PHONY: test-all
test-all: ## Every check and suite, and a table of their times. Of the long matrices the share of the day: ROTATION=3 for another.
	$(call suites,$(or $(SUITE),checks build promises stack))

.PHONY: test-full
test-full: ROTATION = all
test-full: ## `make test-all` with the whole of every matrix.
	$(call suites,$(or $(SUITE),checks build promises stack))

.PHONY: test-repeat
test-repeat: testbed ## Run suites N times (SUITE="e2e unit", N=10), LANES=1 at a time; BURN=2 burns so many cores meanwhile.
	$(call suites,-lanes $(or $(LANES),1) -repeat $(N) -burn $(BURN) $(or $(SUITE),unit stack))

.PHONY: ci
ci: ## What CI runs: `make test-all`, then the demo and five minutes of random faults.
	@$(MAKE) --no-print-directory test-vuln
	$(call suites,checks build promises stack demo soak)

# `make lint` runs vet: for `go test` to do so too, it would analyze every dependency. Both halves run at once: the tests of the log mostly wait.
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
test-worlds: ## Search small worlds of the remediator through: FAULTS=2 at any moment, and DEATHS=1 of the process in the middle of turns (-1: any number).
	go test -count=1 -timeout 0 -v ./remediator -run TestEverySmallWorld -worlds.faults=$(or $(FAULTS),2) -worlds.deaths=$(or $(DEATHS),1)

.PHONY: test-chart
test-chart: $(HELM) ## Lint and render the Helm chart, and check what it renders.
	"$(HELM)" lint --strict --quiet charts/scute
	cd tools && go test -count=1 ./chart/...

.PHONY: test-docs
test-docs: ## Check the documentation against the tree: dependencies, links, and the words of comments and pages.
	cd tools && go test -count=1 ./docs/...

.PHONY: test-e2e
test-e2e: testbed ## The suites on the real stack (module test/): moves, faults, kills.
	$(call suites,$(or $(SUITE),stack))

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Lint all modules, and prove that the linter still holds the walls.
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
	@[ -n "$(GROUP)" ] && [ -z "$(filter-out $(STACK_GROUPS),$(GROUP))" ] || go run ./internal/bench $(filter-out $(STACK_GROUPS),$(GROUP))
	@[ -n "$(GROUP)" ] && [ -z "$(filter $(STACK_GROUPS),$(GROUP))" ] || { cd test && go run ./cmd/bench $(BENCHFLAGS) $(filter $(STACK_GROUPS),$(GROUP)); }

##@ Make

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Generate deep copies, CRDs and the pages and lists that are made from code.
	@./tools/generate "$(CONTROLLER_GEN)" .

# The database of known vulnerabilities: https://vuln.go.dev, or file:///DIR of a copy of it.
VULNDB ?=

.PHONY: test-vuln
test-vuln: ## Fail when scute reaches a known vulnerability; needs VULNDB=https://vuln.go.dev, and says so without.
ifeq ($(VULNDB),)
	@echo "SKIPPED: known vulnerabilities were not looked for: give a database, VULNDB=https://vuln.go.dev or file:///DIR" >&2
else
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 -db "$(VULNDB)" ./...
endif

.PHONY: test-generated
test-generated: $(CONTROLLER_GEN) ## Fail when a generated file is not what `make generate` would write.
	@./tools/generate "$(CONTROLLER_GEN)" --check

# What the suites on the real stack run, and what they import, so that no suite is charged for compiling it.
.PHONY: test-build
test-build: testbed
	cd test && go build ./...

.PHONY: testbed
testbed: ## Build what the suites on the real stack run: scute's programs, kube-apiserver, etcd and others.
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
