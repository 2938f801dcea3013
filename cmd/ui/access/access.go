package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
)

const (
	// keep is how long an answer of the API server holds unless Reviewer.Keep says otherwise.
	keep = time.Minute
	// asking is how long one review may take, with the wait for those before it.
	asking = 10 * time.Second
	// mostUsers and mostRights bound the answers that are kept.
	mostUsers, mostRights = 4096, 1 << 16
	// inFlight bounds the reviews that the API server has at once.
	inFlight = 16
	// tokenBytes bounds what is sent to the API server as a token.
	tokenBytes = 16 << 10
)

// ErrToken says that the API server does not know the token.
var ErrToken = errors.New("the API server does not accept the token: sign in with a valid one, for example from `kubectl create token`")

// User is who has a token, as the API server says.
type User struct {
	info authentication.UserInfo
	key  string
}

// Name is the name of the user in the cluster.
func (u User) Name() string { return u.info.Username }

// Reviewer asks the API server. It is safe for concurrent use.
type Reviewer struct {
	Tokens authenticationclient.TokenReviewInterface
	Access authorizationclient.SubjectAccessReviewInterface
	// Audiences that a token must be for one of; those of the API server if empty.
	Audiences []string
	// Keep is how long an answer holds; a minute if 0.
	Keep time.Duration
	// Now is the clock; time.Now if nil.
	Now func() time.Time

	users  answers[[sha256.Size]byte, User]
	rights answers[right, bool]
	once   sync.Once
	turns  *semaphore.Weighted
}

// right is a question: may a user list a resource in a namespace, "" for all of them?
type right struct{ user, resource, namespace string }

// User is who has a token. Its error is ErrToken for one that is not valid.
func (r *Reviewer) User(ctx context.Context, token string) (User, error) {
	if token == "" || len(token) > tokenBytes {
		return User{}, ErrToken
	}
	return r.users.get(ctx, sha256.Sum256([]byte(token)), r.now, r.keep(), mostUsers, func(ctx context.Context) (User, error) {
		done, err := r.turn(ctx)
		if err != nil {
			return User{}, fmt.Errorf("asking the API server who has the token: %w", err)
		}
		defer done()
		review, err := r.Tokens.Create(ctx, &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token, Audiences: r.Audiences}}, metav1.CreateOptions{})
		switch {
		case err != nil:
			return User{}, fmt.Errorf("asking the API server who has the token: %w", err)
		case !review.Status.Authenticated || review.Status.User.Username == "":
			return User{}, ErrToken
		case len(r.Audiences) > 0 && !slices.ContainsFunc(review.Status.Audiences, func(a string) bool { return slices.Contains(r.Audiences, a) }):
			return User{}, ErrToken // an authenticator that knows no audiences does not say for whom the token is
		}
		return User{review.Status.User, keyOf(review.Status.User)}, nil
	})
}

// Known says that a token was found valid, and that the answer still holds: User then asks nobody.
func (r *Reviewer) Known(token string) bool {
	return r.users.has(sha256.Sum256([]byte(token)), r.now())
}

// turn waits until fewer reviews than the bound are in flight.
func (r *Reviewer) turn(ctx context.Context) (done func(), err error) {
	r.once.Do(func() { r.turns = semaphore.NewWeighted(inFlight) })
	if err := r.turns.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { r.turns.Release(1) }, nil
}

// kinds are those whose aggregates belong to a resource.
func kinds() []eventlog.Kind {
	return []eventlog.Kind{eventlog.KindRun, eventlog.KindMove, eventlog.KindPause, eventlog.KindRemediation, eventlog.KindBackup}
}

// resource is that which the aggregates of a kind belong to; "" if there is none.
func resource(kind eventlog.Kind) string {
	switch kind {
	case eventlog.KindRun:
		return "workflowruns"
	case eventlog.KindMove:
		return "moves"
	case eventlog.KindPause:
		return "pauses"
	case eventlog.KindRemediation:
		return "surgeremediations"
	case eventlog.KindBackup:
		return "backupschedules"
	default:
		return ""
	}
}

// list asks whether a user may list a resource in a namespace, "" for all of them.
func (r *Reviewer) list(ctx context.Context, u User, resource, namespace string) (bool, error) {
	return r.rights.get(ctx, right{u.key, resource, namespace}, r.now, r.keep(), mostRights, func(ctx context.Context) (bool, error) {
		extra := make(map[string]authorization.ExtraValue, len(u.info.Extra))
		for name, values := range u.info.Extra {
			extra[name] = authorization.ExtraValue(values)
		}
		done, err := r.turn(ctx)
		if err != nil {
			return false, fmt.Errorf("asking the API server whether %s may list %s: %w", u.info.Username, resource, err)
		}
		defer done()
		review, err := r.Access.Create(ctx, &authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
			User: u.info.Username, UID: u.info.UID, Groups: u.info.Groups, Extra: extra,
			ResourceAttributes: &authorization.ResourceAttributes{Group: v1alpha1.GroupVersion().Group, Resource: resource, Namespace: namespace, Verb: "list"},
		}}, metav1.CreateOptions{})
		if err != nil {
			return false, fmt.Errorf("asking the API server whether %s may list %s: %w", u.info.Username, resource, err)
		}
		return review.Status.Allowed && !review.Status.Denied, nil
	})
}

// keyOf is everything about a user that an answer depends on.
func keyOf(info authentication.UserInfo) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q", info.Username, info.UID, info.Groups)
	for _, name := range slices.Sorted(maps.Keys(info.Extra)) {
		fmt.Fprintf(&b, " %q=%q", name, info.Extra[name])
	}
	return b.String()
}

func (r *Reviewer) now() time.Time {
	if r.Now == nil {
		return time.Now()
	}
	return r.Now()
}

func (r *Reviewer) keep() time.Duration {
	if r.Keep == 0 {
		return keep
	}
	return r.Keep
}
