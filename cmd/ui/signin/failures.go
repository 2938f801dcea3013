package signin

import (
	"sync"
	"time"

	"k8s.io/utils/lru"
)

// Bounds of the failures: how many at once, how soon one is forgiven, and of how many sources they are counted.
const (
	mostFailures = 20
	forgiven     = time.Second
	mostSources  = 1024
)

// Failures are the tokens that were refused, by where they came from: who tries too many asks the API server nothing any more. It is safe for
// concurrent use; NewFailures makes one.
type Failures struct {
	mu sync.Mutex
	of *lru.Cache // source to *level
}

// level is how many failures are not forgiven yet, at a time.
type level struct {
	count float64
	at    time.Time
}

// NewFailures begins with none.
func NewFailures() *Failures { return &Failures{of: lru.New(mostSources)} }

// Permits says whether a source may try.
func (f *Failures) Permits(source string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.level(source, now).count <= mostFailures-1 // there is room for another one
}

// Add counts a failure.
func (f *Failures) Add(source string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.level(source, now)
	l.count = min(l.count+1, mostFailures)
	f.of.Add(source, l)
}

func (f *Failures) level(source string, now time.Time) *level {
	l := &level{at: now}
	if known, ok := f.of.Get(source); ok {
		l, _ = known.(*level)
	}
	l.count = max(0, l.count-float64(now.Sub(l.at))/float64(forgiven))
	l.at = now
	return l
}
