package remediator_test

import (
	"testing"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// TestQuorum checks what etcd allows for each number of voters and answering voters. "Answering" and "silent" say
// whether the voter that is removed or stopped answers.
func TestQuorum(t *testing.T) {
	for _, c := range []struct {
		voters, answering             int
		add                           bool
		removeAnswering, removeSilent bool
		stopAnswering, stopSilent     bool
		tolerates                     int
	}{
		{voters: 0, answering: 0, tolerates: -1},
		{voters: 1, answering: 1, add: true, stopSilent: true},
		{voters: 1, answering: 0, tolerates: -1},
		{voters: 2, answering: 2, add: true, removeAnswering: true, removeSilent: true, stopSilent: true},
		{voters: 2, answering: 1, tolerates: -1},
		{voters: 3, answering: 3, add: true, removeAnswering: true, removeSilent: true, stopAnswering: true, stopSilent: true, tolerates: 1},
		{voters: 3, answering: 2, removeSilent: true, stopSilent: true},
		{voters: 3, answering: 1, tolerates: -1},
		{voters: 4, answering: 3, add: true, removeAnswering: true, removeSilent: true, stopSilent: true},
		{voters: 5, answering: 4, add: true, removeAnswering: true, removeSilent: true, stopAnswering: true, stopSilent: true, tolerates: 1},
		{voters: 5, answering: 3, removeSilent: true, stopSilent: true},
		{voters: 5, answering: 2, tolerates: -1},
	} {
		q := remediator.Quorum{Voters: c.voters, Answering: c.answering}
		for what, got := range map[string][2]bool{
			"lost":           {q.Lost(), c.tolerates < 0},
			"add":            {q.MayAdd(), c.add},
			"remove, answer": {q.MayRemove(true), c.removeAnswering},
			"remove, silent": {q.MayRemove(false), c.removeSilent},
			"stop, answer":   {q.MayStop(true), c.stopAnswering},
			"stop, silent":   {q.MayStop(false), c.stopSilent},
		} {
			if got[0] != got[1] {
				t.Errorf("%d of %d voters answer: %s is %v, want %v", c.answering, c.voters, what, got[0], got[1])
			}
		}
		if got := q.Tolerance(); got != c.tolerates {
			t.Errorf("%d of %d voters answer: tolerates %d, want %d", c.answering, c.voters, got, c.tolerates)
		}
	}
}

// TestCount checks that learners are counted separately, and that a member that could not be asked counts as silent.
func TestCount(t *testing.T) {
	q := remediator.Count(&remediator.Etcd{Members: []remediator.Member{
		{Node: "a", Answers: object.True}, {Node: "b", Answers: object.False}, {Node: "c", Answers: object.Absent}, {Node: "d", Answers: object.True, Learner: true},
	}})
	if q.Voters != 3 || q.Learners != 1 || q.Answering != 1 || len(q.Silent) != 2 || !q.Lost() {
		t.Errorf("Count = %+v, want 3 voters, 1 learner, 1 answering and 2 silent", q)
	}
}
