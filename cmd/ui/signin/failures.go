package signin

import (
	"sync"
	"time"

	"k8s.io/utils/lru"
)

// Bounds of the failures: how many at once, how soon all of them are forgiven, and of how many sources they are counted.
const (
	mostFailures = 20
	forgiven     = mostFailures * time.Second
	mostSources  = 1024
)

// Failures are the tokens that were refused, by where they came from: who tries too many asks the API server nothing any more. It is safe for
// concurrent use; NewFailures makes one.
type Failures struct {
	mu   sync.Mutex
	most float64
	of   *lru.Cache // source to *level
}

// level is how many failures are not forgiven yet, at a time.
type level struct {
	count float64
	at    time.Time
}

// NewFailures begins with none. Each source is that of a number of clients, and may have as many times the failures of one.
func NewFailures(clients int) *Failures {
	return &Failures{most: float64(clients * mostFailures), of: lru.New(mostSources)}
}

// Permits says whether a source may try.
func (f *Failures) Permits(source string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.level(source, now).count <= f.most-1 // there is room for another one
}

// Add counts a failure.
func (f *Failures) Add(source string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.level(source, now)
	l.count = min(l.count+1, f.most)
	f.of.Add(source, l)
}

func (f *Failures) level(source string, now time.Time) *level {
	l := &level{at: now}
	if known, ok := f.of.Get(source); ok {
		l, _ = known.(*level)
	}
	l.count = max(0, l.count-f.most*float64(now.Sub(l.at))/float64(forgiven))
	l.at = now
	return l
}
