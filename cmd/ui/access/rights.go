package access

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"scute.dev/eventlog"
)

// Scope is what one right is about: the aggregates of a kind in a namespace. The zero Scope is what belongs to no resource, as what the log
// says about itself: who may list scute's resources of every kind in all namespaces may see it.
type Scope struct {
	Kind      eventlog.Kind
	Namespace string
}

// ScopeOf is the scope that an aggregate is in.
func ScopeOf(a eventlog.Aggregate) Scope {
	namespace, _, named := strings.Cut(a.ID, "/")
	if resource(a.Kind) == "" || !named || namespace == "" {
		return Scope{}
	}
	return Scope{a.Kind, namespace}
}

// Rights are what a user may see of a log, as it was when they were asked for. What was not asked for may not be seen.
type Rights struct {
	all   map[eventlog.Kind]bool // in all namespaces
	in    map[Scope]bool
	whole bool
	id    string
}

// Sees says whether an aggregate may be seen.
func (r Rights) Sees(a eventlog.Aggregate) bool {
	s := ScopeOf(a)
	if s == (Scope{}) {
		return r.whole
	}
	return r.all[s.Kind] || r.in[s]
}

// ID is the same for users who may see the same.
func (r Rights) ID() string { return r.id }

// Rights asks what of some scopes a user may see.
func (r *Reviewer) Rights(ctx context.Context, u User, scopes iter.Seq[Scope]) (Rights, error) {
	rights := Rights{all: make(map[eventlog.Kind]bool), in: make(map[Scope]bool), whole: true}
	for _, kind := range kinds() {
		may, err := r.list(ctx, u, resource(kind), "")
		if err != nil {
			return Rights{}, err
		}
		rights.all[kind], rights.whole = may, rights.whole && may
	}
	asked := make(map[Scope]*bool)
	each, ctx := errgroup.WithContext(ctx)
	each.SetLimit(inFlight)
	for s := range scopes {
		if s == (Scope{}) || rights.all[s.Kind] || asked[s] != nil {
			continue
		}
		may := new(bool)
		asked[s] = may
		each.Go(func() (err error) {
			*may, err = r.list(ctx, u, resource(s.Kind), s.Namespace)
			return err
		})
	}
	if err := each.Wait(); err != nil {
		return Rights{}, err
	}
	for s, may := range asked {
		if *may {
			rights.in[s] = true
		}
	}
	rights.id = rights.sum()
	return rights, nil
}

// sum is a hash of what may be seen.
func (r Rights) sum() string {
	var list []Scope
	for kind, may := range r.all {
		if may {
			list = append(list, Scope{Kind: kind})
		}
	}
	for s := range r.in {
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b Scope) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace))
	})
	h := sha256.New()
	for _, s := range list {
		fmt.Fprintf(h, "%q %q\n", s.Kind, s.Namespace)
	}
	return hex.EncodeToString(h.Sum(nil))
}
