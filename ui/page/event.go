package page

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
	"scute.dev/ui/feed"
)

// maxData is the size of the largest event data that a page shows, in bytes.
const maxData = 256 << 10

// cause is the event that caused another event. Link is "" if the cause was not found.
type cause struct{ ID, Place, What, Link string }

type eventPage struct {
	fact
	ID, Type, Correlation string
	Stored                time.Time
	Cause                 *cause
	Data                  string
	Cut                   bool
	Others                []fact
	// Leaf is the hash that seals the commit. Proof is the address of the page that proves it.
	Leaf, Proof string
	Commands    []string
}

func eventLink(seq uint64, index int) string {
	return "/event?" + url.Values{"at": {strconv.FormatUint(seq, 10)}, "n": {strconv.Itoa(index)}}.Encode()
}

// event builds the page of one event, which is in the commit of the page's moment.
func event(v *view) (any, error) {
	n, err := v.number("n")
	if err != nil {
		return nil, err
	}
	if v.Seq == 0 {
		return nil, fmt.Errorf("%w: the log has no commit at this moment", feed.ErrNotFound)
	}
	if at, err := strconv.ParseUint(v.Query.Get("at"), 10, 64); err == nil && at != v.Seq { // the page's moment is another commit
		return nil, fmt.Errorf("%w: commit %d", feed.ErrNotFound, at)
	}
	r, err := v.site.feed.Commits.Read(v.Seq)
	if err != nil {
		return nil, err
	}
	events, told := kit.Events(r), v.factsOf(r)
	if n >= len(events) {
		return nil, fmt.Errorf("%w: commit %d has no event %d, only %d", feed.ErrNotFound, r.Seq, n, len(events))
	}
	e, fact := events[n], told[n]
	p := eventPage{fact: fact, ID: e.ID, Type: e.Type, Correlation: e.Correlation, Stored: r.Stored, Others: slices.Delete(told, n, n+1)}
	p.Leaf = new(seal.Hasher).Hash(r).String()
	if !v.site.NoCommands {
		p.Commands = []string{v.site.kit.Hint("", "log", "show", fmt.Sprintf("%d/%d", r.Seq, n)) + " shows it in a terminal"}
	}
	if v.site.Prover != nil {
		p.Proof = proofLink(r.Seq)
	}
	data := []byte(e.Data)
	if len(data) == 0 { // the commit cannot be decoded
		data = r.Data()
	}
	if p.Data = kit.Indent(data); len(p.Data) > maxData {
		p.Data, p.Cut = p.Data[:maxData], true
	}
	v.Title = fmt.Sprintf("event %d/%d", p.Seq, p.Index)
	p.Cause, err = v.cause(r, e.Causation)
	return p, err
}

// cause returns the event with this ID, which caused an event of r. It searches the earlier commits
// of the same aggregate.
func (v *view) cause(r eventlog.Record, id string) (*cause, error) {
	if id == "" {
		return nil, nil //nolint:nilnil // no cause is recorded
	}
	of := v.site.feed.Commits.Sequences(r.Aggregate, r.Seq)
	for _, seq := range slices.Backward(of[max(0, len(of)-maxCommitsSearched):]) {
		earlier, err := v.site.feed.Commits.Read(seq)
		if err != nil {
			return nil, err
		}
		for i, e := range kit.Events(earlier) {
			if e.ID == id {
				return &cause{ID: id, Place: fmt.Sprintf("%d/%d", seq, i), What: cmp.Or(e.Line.Name, e.Type), Link: eventLink(seq, i)}, nil
			}
		}
	}
	return &cause{ID: id}, nil
}
