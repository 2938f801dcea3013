package webhook

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"

	"scute.dev/eventlog"
	"scute.dev/internal/sleep"
)

const (
	requestTimeout = 30 * time.Second
	// maxRetryAfter is the longest wait that a receiver can request.
	maxRetryAfter = 10 * time.Minute
	// maxDrainBytes and drainTimeout limit how much of a response is read, and for how long. A
	// response is read so that the connection can be reused.
	maxDrainBytes = 4 << 10
	drainTimeout  = time.Second
)

var (
	// errRejected means that the receiver would reject the event each time.
	errRejected = errors.New("the receiver of the webhook refuses the event")
	// errUnavailable means that no attempt succeeded within MaxElapsedTime.
	errUnavailable = errors.New("the receiver of the webhook did not accept the event")
)

// Sink posts events to one receiver.
type Sink struct {
	URL    string
	Secret Secret
	Client *http.Client
	// InitialInterval and MaxInterval are the first and the longest wait between two attempts, if the
	// receiver requests no wait; 0 means 500 ms and 1 m. MaxElapsedTime limits the attempts for one
	// event; 0 means 5 m.
	InitialInterval, MaxInterval, MaxElapsedTime time.Duration
	// OnRetry is called after each failed attempt that is retried. It may be nil.
	OnRetry func(err error, wait time.Duration)

	notBefore time.Time // the receiver last requested no attempt before this time
}

// Send posts an event until the receiver has accepted it. It retries after network errors,
// timeouts, 408, 429 and 5xx. It does not retry before the time in Retry-After, which also delays
// the next call of Send. For all other responses except 2xx it returns errRejected. No error
// contains the URL, the token or the receiver's response. Send is not safe for concurrent use.
func (s *Sink) Send(ctx context.Context, e eventlog.CloudEvent) error {
	if err := sleep.For(ctx, time.Until(s.notBefore)); err != nil {
		return err
	}
	waits := &retryBackOff{ExponentialBackOff: backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(cmp.Or(s.InitialInterval, 500*time.Millisecond)),
		backoff.WithMaxInterval(cmp.Or(s.MaxInterval, time.Minute)),
		backoff.WithMaxElapsedTime(cmp.Or(s.MaxElapsedTime, 5*time.Minute)),
	)}
	err := backoff.RetryNotify(func() (err error) {
		waits.requested, err = s.post(ctx, e)
		s.notBefore = time.Now().Add(waits.requested)
		return err
	}, backoff.WithContext(waits, ctx), func(err error, wait time.Duration) {
		if s.OnRetry != nil {
			s.OnRetry(err, wait)
		}
	})
	if err == nil || errors.Is(err, errRejected) || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", errUnavailable, err)
}

// retryBackOff is a backoff with jitter. Each wait is at least as long as the receiver requests.
type retryBackOff struct {
	*backoff.ExponentialBackOff
	requested time.Duration
}

func (w *retryBackOff) NextBackOff() time.Duration {
	next := w.ExponentialBackOff.NextBackOff()
	if next == backoff.Stop {
		return next
	}
	return max(next, w.requested)
}

// post makes one request. asked is how long the receiver asks the client to wait before the next
// request.
func (s *Sink) post(ctx context.Context, e eventlog.CloudEvent) (asked time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL, bytes.NewReader(e.Data))
	if err != nil {
		return 0, backoff.Permanent(fmt.Errorf("%w: its URL cannot be used", errRejected))
	}
	for name, value := range e.Headers() {
		request.Header.Set(name, value)
	}
	request.Header.Set("Content-Type", e.DataContentType)
	request.Header.Set("User-Agent", "scute")
	token, err := s.Secret.token()
	if err != nil {
		return 0, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := s.Client.Do(request)
	if err != nil {
		return 0, safeError(err)
	}
	defer answer.Body.Close()
	defer time.AfterFunc(drainTimeout, cancel).Stop()
	_, _ = io.CopyN(io.Discard, answer.Body, maxDrainBytes)
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return 0, nil
	case code >= 500 || code == http.StatusTooManyRequests || code == http.StatusRequestTimeout:
		return retryAfter(answer.Header.Get("Retry-After"), time.Now()), fmt.Errorf("it answered %s", statusText(code))
	default:
		return 0, backoff.Permanent(fmt.Errorf("%w: it answered %s", errRejected, statusText(code)))
	}
}

// statusText returns a code with its standard text, because the text of the response is untrusted.
func statusText(code int) string { return fmt.Sprintf("%d %s", code, http.StatusText(code)) }

// errNotHTTP replaces errors of the client that quote the response, because the response may
// contain the request.
var errNotHTTP = errors.New("the connection was lost, or the answer is not HTTP")

// safeError returns the part of a client's error that is safe for messages. It omits the URL, whose
// query may be a secret, and all received data.
func safeError(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		err = u.Err
	}
	var network *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &network):
		return network
	case errors.As(err, &certificate):
		return certificate
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, http.ErrSchemeMismatch), strings.HasPrefix(err.Error(), "tls: "):
		return err
	default:
		return errNotHTTP
	}
}

// retryAfter parses Retry-After, in seconds or as a date.
func retryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxRetryAfter)
}
