package evidence

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/cenkalti/backoff/v4"

	"scute.dev/eventlog/seal"
)

// Witness is a Destination: an HTTP service that receives checkpoints through the call
// add-checkpoint of C2SP tlog-witness. It rejects a checkpoint without a proof that the checkpoint
// continues the previous one.
type Witness struct {
	// URL is the submission prefix.
	URL    string
	Client *http.Client
	// knownSize is the size of the witness's newest checkpoint, as far as this process knows.
	knownSize uint64
}

// Name implements Destination.
func (w *Witness) Name() string { return "witness " + w.URL }

// Last implements Destination. A witness does not return checkpoints, because it checks consistency itself.
func (w *Witness) Last(context.Context) ([]byte, error) { return nil, nil }

// sizeType is the content type of a response that contains the size of the witness's checkpoint.
const sizeType = "text/x.tlog.size"

// Publish implements Destination.
func (w *Witness) Publish(ctx context.Context, p Publication) error {
	w.knownSize = min(w.knownSize, p.Size)
	has, err := w.addCheckpoint(ctx, p)
	if err != nil || has == nil {
		return err
	}
	if *has > p.Size {
		return backoff.Permanent(fmt.Errorf("%w: the witness has a checkpoint of %d commits, but the log has %d: commits were lost", errInconsistent, *has, p.Size))
	}
	w.knownSize = *has
	if has, err = w.addCheckpoint(ctx, p); err == nil && has != nil {
		err = backoff.Permanent(fmt.Errorf("%w: the witness has another checkpoint of %d commits", errInconsistent, *has))
	}
	return err
}

// addCheckpoint sends a checkpoint. If the witness's own checkpoint does not have the size that the
// request assumes, it returns the size of the witness's checkpoint.
func (w *Witness) addCheckpoint(ctx context.Context, p Publication) (*uint64, error) {
	proof, err := seal.ProveConsistency(p.Tree, w.knownSize, p.Size)
	if err != nil {
		return nil, err
	}
	var body bytes.Buffer
	fmt.Fprintf(&body, "old %d\n", w.knownSize)
	for _, h := range proof {
		fmt.Fprintln(&body, h)
	}
	fmt.Fprintf(&body, "\n%s", p.Signed)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(w.URL, "/")+"/add-checkpoint", &body)
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	answer, err := w.Client.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
	if err != nil {
		return nil, err
	}
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		w.knownSize = p.Size
		return nil, nil
	case code == http.StatusConflict && answer.Header.Get("Content-Type") == sizeType:
		size, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 62)
		return &size, err
	case code == http.StatusConflict || code == http.StatusUnprocessableEntity:
		return nil, backoff.Permanent(fmt.Errorf("%w: the witness refuses it: %s", errInconsistent, answer.Status))
	case code >= 500 || code == http.StatusTooManyRequests:
		return nil, fmt.Errorf("the witness answered %s", answer.Status)
	default:
		return nil, backoff.Permanent(fmt.Errorf("the witness answered %s: check that it knows the public key of this log", answer.Status))
	}
}
