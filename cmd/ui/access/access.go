package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

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
	// asking is how long one review may take.
	asking = 5 * time.Second
	// most bounds the answers that are kept, of each sort.
	most = 4096
	// tokenBytes bounds what is sent to the API server as a token.
	tokenBytes = 16 << 10
)

// ErrToken says that the API server does not know the token.
var ErrToken = errors.New("the API server does not accept the token: sign in with a valid one, for example from `kubectl create token`")

// User is who has a token, as the API server says.
type User struct{ info authentication.UserInfo }

// Reviewer asks the API server. It is safe for concurrent use.
type Reviewer struct {
	Tokens authenticationclient.TokenReviewInterface
	Access authorizationclient.SubjectAccessReviewInterface
	// Keep is how long an answer holds; a minute if 0.
	Keep time.Duration
	// Now is the clock; time.Now if nil.
	Now func() time.Time

	users  answers[[sha256.Size]byte, User]
	rights answers[right, bool]
}

// right is a question: may a user list a resource in a namespace, "" for all of them?
type right struct{ user, resource, namespace string }

// User is who has a token. Its error is ErrToken for one that is not valid.
func (r *Reviewer) User(ctx context.Context, token string) (User, error) {
	if token == "" || len(token) > tokenBytes {
		return User{}, ErrToken
	}
	return r.users.get(sha256.Sum256([]byte(token)), r.now(), r.keep(), func() (User, error) {
		ctx, cancel := context.WithTimeout(ctx, asking)
		defer cancel()
		review, err := r.Tokens.Create(ctx, &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		switch {
		case err != nil:
			return User{}, fmt.Errorf("asking the API server who has the token: %w", err)
		case !review.Status.Authenticated || review.Status.User.Username == "":
			return User{}, ErrToken
		}
		return User{review.Status.User}, nil
	})
}

// May says whether a user may read what the log has about an aggregate. What belongs to no resource, as what the log says about itself, may
// read who may list scute's resources of every kind in all namespaces.
func (r *Reviewer) May(ctx context.Context, u User, a eventlog.Aggregate) (bool, error) {
	namespace, _, named := strings.Cut(a.ID, "/")
	resource, known := resources()[a.Kind]
	if known && named && namespace != "" {
		return r.list(ctx, u, resource, namespace)
	}
	for _, resource := range resources() {
		if may, err := r.list(ctx, u, resource, metav1.NamespaceAll); err != nil || !may {
			return false, err
		}
	}
	return true, nil
}

// resources are those that the kinds of aggregates belong to.
func resources() map[eventlog.Kind]string {
	return map[eventlog.Kind]string{
		eventlog.KindRun: "workflowruns", eventlog.KindMove: "moves", eventlog.KindPause: "pauses", eventlog.KindRemediation: "surgeremediations",
		eventlog.KindBackup: "backupschedules",
	}
}

func (r *Reviewer) list(ctx context.Context, u User, resource, namespace string) (bool, error) {
	return r.rights.get(right{u.key(), resource, namespace}, r.now(), r.keep(), func() (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, asking)
		defer cancel()
		extra := make(map[string]authorization.ExtraValue, len(u.info.Extra))
		for name, values := range u.info.Extra {
			extra[name] = authorization.ExtraValue(values)
		}
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

// key is everything that an answer depends on.
func (u User) key() string {
	names := make([]string, 0, len(u.info.Extra))
	for name := range u.info.Extra {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q", u.info.Username, u.info.UID, u.info.Groups)
	for _, name := range names {
		fmt.Fprintf(&b, " %q=%q", name, u.info.Extra[name])
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

// answers are kept until they are too old, or too many. No error is kept.
type answers[K comparable, V any] struct {
	mu    sync.Mutex
	known map[K]answer[V]
}

type answer[V any] struct {
	value V
	until time.Time
}

func (a *answers[K, V]) get(key K, now time.Time, keep time.Duration, ask func() (V, error)) (V, error) {
	a.mu.Lock()
	known, ok := a.known[key]
	a.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.value, nil
	}
	value, err := ask()
	if err != nil {
		return value, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.known == nil || len(a.known) >= most {
		a.known = make(map[K]answer[V])
	}
	a.known[key] = answer[V]{value, now.Add(keep)}
	return value, nil
}
