package connect

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/eventlog/embedded"
	"scute.dev/internal/logaccess"
)

// tokenGracePeriod is how long a daemon may still reject a token after the token has changed.
// retryInterval is the wait between attempts during that time.
const tokenGracePeriod, retryInterval = 5 * time.Second, 250 * time.Millisecond

// tokenSource reads the token for the log from the Secret of a role.
type tokenSource struct {
	cluster *Cluster
	secrets logaccess.Secrets
	role    embedded.Role
	logger  *slog.Logger

	mu   sync.Mutex // guards role and last
	last string
}

// token reads the token. If the user may not read the Secret of readers, it reads the Secret of
// operators, who may also read the log.
func (p *tokenSource) token(ctx context.Context) (string, error) {
	token, err := p.get(ctx, p.role)
	if apierrors.IsForbidden(err) && p.role == embedded.Reader {
		if instead, err := p.get(ctx, embedded.Operator); err == nil {
			p.role = embedded.Operator
			return instead, nil
		}
	}
	if err != nil {
		return "", p.explain(err)
	}
	return token, nil
}

func (p *tokenSource) get(ctx context.Context, role embedded.Role) (string, error) {
	var secret corev1.Secret
	if err := p.cluster.Client.Get(ctx, types.NamespacedName{Namespace: p.secrets.Namespace, Name: p.secrets.NameFor(role)}, &secret); err != nil {
		return "", err
	}
	return logaccess.Token(secret.Data)
}

// refresh returns the current token. If the token cannot be read, it returns the last one.
func (p *tokenSource) refresh() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if token, err := p.token(context.Background()); err == nil {
		p.last = token
	} else {
		p.logger.Warn("the token of the log cannot be read again", "error", err)
	}
	return p.last
}

func (p *tokenSource) explain(err error) error {
	may, role := "read the log", p.secrets.NameFor(embedded.Reader)
	if p.role == embedded.Operator {
		may, role = "append to the log", p.secrets.Name
	}
	err = fmt.Errorf("reading Secret %s/%s, whose token is needed to %s: %w", p.secrets.Namespace, p.secrets.NameFor(p.role), may, err)
	switch {
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: ask for permission to get that Secret (the chart's Role %s/%s has it), or name the log with --log or --nats", err, p.secrets.Namespace, role)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: the daemon creates it when it starts: check the daemon's log lines", err)
	}
	return p.cluster.Explain(err)
}
