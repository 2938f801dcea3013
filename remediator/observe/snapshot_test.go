package observe

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"testing"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"

	"scute.dev/kube/object"
)

// TestChecked: a snapshot ends with the SHA-256 of what comes before, in whatever parts it comes.
func TestChecked(t *testing.T) {
	data := bytes.Repeat([]byte("database "), 100)
	sum := sha256.Sum256(data)
	whole := append(data, sum[:]...)
	pass := func(in []byte, part int) error {
		var out bytes.Buffer
		c := &checked{to: &out, left: int64(len(whole))}
		for len(in) > 0 {
			n := min(part, len(in))
			if _, err := c.Write(in[:n]); err != nil {
				t.Fatal(err)
			}
			in = in[n:]
		}
		if !bytes.Equal(out.Bytes(), whole[:out.Len()]) {
			t.Error("something else was passed on")
		}
		return c.end()
	}
	for _, part := range []int{1, 7, 31, 32, 33, 500, len(whole)} {
		if err := pass(whole, part); err != nil {
			t.Errorf("in parts of %d: %v", part, err)
		}
	}
	for _, n := range []int{0, 1, 31, 32, len(data), len(whole) - 1} {
		if err := pass(whole[:n], 10); !errors.Is(err, errChecksum) {
			t.Errorf("%d of %d bytes: %v", n, len(whole), err)
		}
	}
	small := &checked{to: io.Discard, left: int64(len(whole)) - 1}
	if _, err := small.Write(whole); !errors.Is(err, errTooLarge) {
		t.Errorf("larger than it may be: %v", err)
	}
	for _, at := range []int{0, len(data) - 1, len(data), len(whole) - 1} {
		whole[at] ^= 1
		c := &checked{to: io.Discard, left: int64(len(whole))}
		if _, err := c.Write(whole); err != nil {
			t.Fatal(err)
		}
		if err := c.end(); !errors.Is(err, errChecksum) {
			t.Errorf("a bit changed at %d: %v", at, err)
		}
		whole[at] ^= 1
	}
}

// TestWhole: a snapshot is of a member that has what the majority has, and rather not of the leader.
func TestWhole(t *testing.T) {
	list := []*etcd.Member{{ID: 1, Name: "a"}, {ID: 2, Name: "b"}, {ID: 3, Name: "c"}, {ID: 4, Name: "d", IsLearner: true}}
	heard := func(change func(r *responses)) responses {
		r := responses{list: list}
		for _, m := range list {
			r.each = append(r.each, answer{node: m.Name, id: m.ID, leader: 1, answers: object.True, list: list})
		}
		change(&r)
		return r
	}
	for what, c := range map[string]struct {
		want   string
		change func(r *responses)
	}{
		"all are well":    {"b", func(*responses) {}},
		"silent":          {"c", func(r *responses) { r.each[1].answers = object.Unknown }},
		"lags behind":     {"c", func(r *responses) { r.each[1].list, r.each[1].stale = nil, list }},
		"corrupt":         {"c", func(r *responses) { r.alarms = []*etcd.AlarmMember{{MemberID: 2, Alarm: etcd.AlarmType_CORRUPT}} }},
		"full":            {"b", func(r *responses) { r.alarms = []*etcd.AlarmMember{{MemberID: 2, Alarm: etcd.AlarmType_NOSPACE}} }},
		"by a peer":       {"c", func(r *responses) { r.each[1].way = way{peer: "a"} }},
		"only the leader": {"a", func(r *responses) { r.each = append(r.each[:1], r.each[3]) }},
		"only a learner":  {"", func(r *responses) { r.each = r.each[3:] }},
		"none has all": {"", func(r *responses) {
			for i := range r.each {
				r.each[i].list, r.each[i].stale = nil, list
			}
		}},
	} {
		if got, err := heard(c.change).whole(); got.node != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: from %q, %v", what, got.node, err)
		}
	}
}
