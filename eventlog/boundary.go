package eventlog

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// headerFollows is the sequence of the aggregate's commit before this one, where that one is in an earlier epoch. The server is told
// then that the aggregate has no commit in the stream.
const headerFollows = "Scute-Follows"

// address makes the message one for the epoch: its subject there, and what the server is to find.
func (e epoch) address(m *nats.Msg, c Commit) {
	if e.spec.epoch < 2 {
		return
	}
	m.Subject = e.spec.subject(c.Aggregate.Subject())
	expected := c.Expected
	delete(m.Header, headerFollows)
	if 0 < expected && expected < e.spec.start() {
		m.Header[headerFollows] = []string{strconv.FormatUint(expected, 10)}
		expected = 0
	}
	m.Header[jetstream.ExpectedLastSubjSeqHeader] = []string{strconv.FormatUint(expected, 10)}
}

// errFree says that a commit can be tried.
var errFree = errors.New("the place of the commit is free")

// follow looks whether a commit is the next one of its aggregate, as far as that is decided by closed epochs. What they have does not
// change any more, and the server looks at the rest. Its error is errFree if the commit is.
func (l *Log) follow(ctx context.Context, c Commit, e epoch) (Receipt, error) {
	if c.epoch > 0 && c.epoch != e.spec.number() {
		return l.settle(ctx, c, fmt.Errorf("%w: epoch %d was closed", ErrConflict, c.epoch))
	}
	if e.spec.epoch < 2 || c.Expected >= e.spec.start() {
		return Receipt{}, errFree
	}
	if !e.opened && c.Aggregate != epochs() {
		if err := l.begun(ctx, e); err != nil {
			return Receipt{}, err
		}
	}
	return l.settle(ctx, c, errFree)
}
