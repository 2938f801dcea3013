package transfer

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

type scope struct {
	*Transfer

	spec     mover.Spec
	members  mover.Members
	snapshot *snapshot
	// hidden is the error of a list request at the source that was forbidden, or nil.
	hidden error
}

type need int

const (
	// sourceRead means that all objects of the source were read. sourceHidden means that a list
	// request was forbidden.
	sourceRead need = 1 << iota
	sourceHidden
	// targetReached means that the target is connected. targetUsable means that it is also a
	// management cluster other than the source.
	targetReached
	targetUsable
)

type check struct {
	needs need
	run   func(*scope, context.Context) (findings, error)
}

// checks returns the checks, which run at the same time.
func checks() []check {
	return []check{
		{sourceHidden, (*scope).checkListing},
		{sourceRead, (*scope).checkSelection},
		{sourceRead, (*scope).checkObjects},
		{sourceRead, (*scope).checkGraph},
		{sourceRead, (*scope).checkDefinitions},
		{sourceRead, (*scope).checkDependents},
		{sourceRead, (*scope).checkRemediations},
		{sourceRead, (*scope).checkRemoval},
		{sourceRead, (*scope).checkLost},
		{sourceRead | targetReached, (*scope).checkExtensions},
		{sourceRead | targetReached, (*scope).checkWithheld},
		{sourceRead | targetReached, (*scope).checkMissing},
		{targetUsable, (*scope).checkKinds},
		{targetUsable, (*scope).checkProviders},
		{targetUsable, (*scope).checkStatus},
		{targetUsable, (*scope).checkCreation},
	}
}

// preflight runs all checks, even if some fail, and returns their findings as one outcome.
func (t *Transfer) preflight(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	t.target, t.targetID = nil, ""
	if err := t.connect(ctx, s.Spec, "", false); err != nil {
		return nil, err
	}
	p := &scope{Transfer: t, spec: s.Spec}
	var unusable findings
	var unknown, err error
	var reached sync.WaitGroup
	reached.Go(func() { unusable, unknown = p.reach(ctx) })
	p.members, p.snapshot, err = t.members(ctx, s.Spec, everyKind)
	reached.Wait()
	var known need
	var clusters []string
	switch {
	case apierrors.IsForbidden(err):
		p.hidden, known = err, sourceHidden
	case err != nil:
		return nil, err
	case t.hasOwnAnnotation(p.members):
		t.target = nil // reconnect once the log has recorded the target
		return mover.LogLost{Log: t.log}, nil
	default:
		known = sourceRead
		_, clusters = clustersOf(p.snapshot, s.Spec)
	}
	if unknown != nil {
		return nil, unknown
	}
	found, err := p.run(ctx, known, unusable)
	if err != nil {
		return nil, err
	}
	return mover.PreflightDone{Clusters: clusters, TargetID: t.targetID, Findings: sortFindings(found)}, nil
}

// reach connects to the target. unusable contains findings if copies cannot be created there.
func (p *scope) reach(ctx context.Context) (unusable findings, err error) {
	if err := p.connect(ctx, p.spec, "", true); err != nil {
		unusable.AddError(p.targetField(), err.Error(), unreachedAdvice(err))
		return unusable, ctx.Err()
	}
	here, err := p.sourceID(ctx)
	if err != nil {
		return nil, err
	}
	if here == p.targetID && p.archive == nil { // a restore may write to the cluster that was backed up
		unusable.AddError(targetField, "the target is the source cluster itself", "put the kubeconfig of another management cluster into the Secret")
	} else if _, ok := p.targetTypes["Cluster."+object.CoreGroup]; !ok {
		unusable.AddError(p.targetField(), "the target is not a management cluster: it does not serve Clusters of Cluster API",
			"install Cluster API on the target (clusterctl init), or name the right cluster")
	}
	return unusable, nil
}

func (p *scope) run(ctx context.Context, known need, found findings) (findings, error) {
	if p.target != nil {
		if known |= targetReached; len(found) == 0 {
			known |= targetUsable
		}
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range checks() {
		if c.needs&^known != 0 {
			continue
		}
		group.Go(func() error {
			some, err := c.run(p, ctx)
			mu.Lock()
			defer mu.Unlock()
			found = append(found, some...)
			return err
		})
	}
	err := group.Wait()
	return found, err
}

type findings = mover.Findings

// collect returns a hand function that appends the results to found.
func collect[S ~[]E, E any](found *S) func([]S) error {
	return func(batch []S) error {
		*found = append(*found, slices.Concat(batch...)...)
		return nil
	}
}

func refusedError(f findings) error {
	if f.HasErrors() {
		return &RefusedError{Findings: sortFindings(f)}
	}
	return nil
}

// sortFindings returns the findings without duplicates, errors first, so that the same objects
// always give the same result.
func sortFindings(f findings) findings {
	slices.SortFunc(f, func(a, b mover.Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(f)
}
