# Everything a contributor or a CI machine runs. Needs Go, git and make (GNU Make 3.81 or newer), nothing else; only
# `make image` needs Docker. `make` alone prints the list.

# Static binaries and no C compiler. Set CGO_ENABLED=1 to use the race detector or the system's resolver.
CGO_ENABLED ?= 0
export CGO_ENABLED

SHELL   := /bin/bash
BIN     := $(CURDIR)/bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
IMAGE   ?= localhost/scute:$(VERSION)
GROUP   ?=

# The groups that are measured on the real stack, by the module test/.
STACK_GROUPS := remediation

# How long all tests of one package may take: the root's packages, and the end-to-end suites on the real stack.
TEST_TIMEOUT     ?= 10m
TEST_E2E_TIMEOUT ?= 40m

LDFLAGS := -s -w -X main.version=$(VERSION)

GOLANGCI_LINT  := $(BIN)/golangci-lint
CONTROLLER_GEN := $(BIN)/controller-gen
HELM           := $(BIN)/helm

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
build: ## Build scuted, scutectl and kubectl-scute into bin/.
	@mkdir -p "$(BIN)"
	go build -ldflags '$(LDFLAGS)' -o "$(BIN)/scuted" ./cmd/daemon
	go build -ldflags '$(LDFLAGS)' -o "$(BIN)/scutectl" ./cmd/ctl
	@ln -sf scutectl "$(BIN)/kubectl-scute"

.PHONY: demo
demo: testbed $(HELM) ## Move a cluster between two real management clusters, killing scuted on the way.
	cd test && go run ./cmd/demo

.PHONY: image
image: ## Build the container image (IMAGE=name:tag). Needs Docker.
	docker build --build-arg VERSION=$(VERSION) -t $(IMAGE) .

##@ Check

.PHONY: test
test: test-generated lint test-docs test-chart test-unit test-e2e ## Every check that CI makes, in the order of their cost.

.PHONY: test-unit
test-unit: ## Unit tests of the root module.
	go test -timeout $(TEST_TIMEOUT) ./...

.PHONY: test-chart
test-chart: $(HELM) ## Lint and render the Helm chart, and check what it renders.
	"$(HELM)" lint --strict --quiet charts/scute
	cd tools && go test -count=1 ./chart/...

.PHONY: test-docs
test-docs: ## Check the documentation against the tree: dependencies, links.
	cd tools && go test -count=1 ./docs/...

.PHONY: test-e2e
test-e2e: testbed $(HELM) ## End-to-end and fault tests on the real stack (module test/).
	@# Two test beds at a time, which mostly wait, each with about half of the work. What is killed, how often and where, and
	@# what was sampled meanwhile, is in the output of the long suites.
	cd test && { go test -p 1 -v -timeout $(TEST_E2E_TIMEOUT) ./remediation ./named & half=$$!; \
		go test -v -timeout $(TEST_E2E_TIMEOUT) ./e2e; long=$$?; \
		go test -p 1 -timeout $(TEST_E2E_TIMEOUT) $$(go list ./... | grep -v -e /e2e$$ -e /remediation$$ -e /named$$); rest=$$?; \
		wait $$half && test $$long$$rest = 00; }

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

.PHONY: bench
bench: ## Print the benchmark figures, one per line; GROUP=log for one group. GROUP=remediation builds and uses the test bed.
	@[ -n "$(GROUP)" ] && [ -z "$(filter-out $(STACK_GROUPS),$(GROUP))" ] || go run ./internal/bench $(filter-out $(STACK_GROUPS),$(GROUP))
	@[ -n "$(GROUP)" ] && [ -z "$(filter $(STACK_GROUPS),$(GROUP))" ] || { cd test && go run ./cmd/bench; }

##@ Make

.PHONY: generate
generate: $(CONTROLLER_GEN) ## Generate deep copies, CRDs and the chart's copy of the CRDs from api/.
	@./tools/generate "$(CONTROLLER_GEN)" .

.PHONY: test-generated
test-generated: $(CONTROLLER_GEN) ## Fail when a generated file is not what `make generate` would write.
	@./tools/generate "$(CONTROLLER_GEN)" --check

.PHONY: testbed
testbed: ## Build the test bed's kube-apiserver, etcd and kube-controller-manager, once.
	cd test && go run ./cmd/testbed build

.PHONY: clean
clean: ## Remove what was built, the test bed's binaries included.
	rm -rf "$(BIN)" .testbed test/.run

# The tools are pinned in tools/go.mod and built once for each change of it.
$(GOLANGCI_LINT): tools/go.mod tools/go.sum
	@mkdir -p "$(BIN)" && echo "building golangci-lint (two to three minutes, once)" >&2
	cd tools && go build -o "$@" github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(CONTROLLER_GEN): tools/go.mod tools/go.sum
	@mkdir -p "$(BIN)" && echo "building controller-gen (once)" >&2
	cd tools && go build -o "$@" sigs.k8s.io/controller-tools/cmd/controller-gen

$(HELM): tools/go.mod tools/go.sum
	@mkdir -p "$(BIN)" && echo "building helm (two to three minutes, once)" >&2
	cd tools && go build -o "$@" helm.sh/helm/v4/cmd/helm
