package cloud

import "testing"

func TestQuorum(t *testing.T) {
	well, silent, learner := EtcdMember{Answers: true, Votes: true}, EtcdMember{Votes: true}, EtcdMember{}
	for name, c := range map[string]struct {
		members []EtcdMember
		want    bool
	}{
		"nobody":                    {nil, false},
		"one":                       {[]EtcdMember{well}, true},
		"one of two":                {[]EtcdMember{well, silent}, false},
		"two of three":              {[]EtcdMember{well, well, silent}, true},
		"one of three":              {[]EtcdMember{well, silent, silent}, false},
		"a learner has no vote":     {[]EtcdMember{well, learner}, true},
		"two of four":               {[]EtcdMember{well, well, silent, silent}, false},
		"two, one silent, one new":  {[]EtcdMember{well, well, silent, learner}, true},
		"two silent and two newest": {[]EtcdMember{well, silent, silent, learner}, false},
	} {
		if got := Quorum(c.members); got != c.want {
			t.Errorf("%s: Quorum = %v, want %v", name, got, c.want)
		}
	}
}
