package kit

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/cli"
)

// Stream returns the stream of a live display. If the format prints data, this is standard error,
// because standard output must contain only the data.
func (k *Kit) Stream(format *cli.Format) io.Writer {
	if format.Data() {
		return k.Env.Err
	}
	return k.Env.Out
}

// drawer returns a function that draws objects. The caller calls it after each change, and every
// second to update ages. On a terminal, the function redraws a block in place.
func (p *Session[T]) drawer(format *cli.Format, single, namespaces bool) func([]T) error {
	out, n := p.Stream(format), p.Noun
	if !p.Env.CanRedraw(out) {
		return p.lines(format).draw
	}
	screen := &cli.Screen{Out: out, Size: p.Env.Size}
	return func(list []T) error {
		v := p.ViewOn(out)
		switch {
		case len(list) == 0:
			return nil
		case single:
			return screen.Draw(n.Render(v, list[0]))
		}
		stalled := "" // once for all objects
		for _, t := range list {
			stalled = cmp.Or(stalled, n.stalled(t))
		}
		return screen.Draw(append(v.Wrapped("Stalled", stalled, cli.Red), n.Table(v, list, namespaces, false)...))
	}
}

func (p *Session[T]) lines(format *cli.Format) *lines[T] {
	return &lines[T]{Session: p, out: p.Stream(format), printed: make(map[types.NamespacedName]map[string]printedUpdate)}
}

// Render returns what a terminal shows for a followed object.
func (n *Noun[T]) Render(v View, t T) []string {
	return append([]string{v.Paint.Text(cli.Bold, n.Key(t).String())}, n.StatusLines(v, t)...)
}

// lines writes a line for each change, for output that cannot be redrawn.
type lines[T any] struct {
	*Session[T]
	out     io.Writer
	printed map[types.NamespacedName]map[string]printedUpdate
}

type printedUpdate struct {
	Update
	at time.Time
}

// draw writes a line for each changed text. If only counts have changed, it writes at most one line
// a second, and a later call writes the change that it skipped.
func (l *lines[T]) draw(list []T) error {
	var keys []types.NamespacedName
	for _, t := range list {
		key := l.Noun.Key(t)
		keys = append(keys, key)
		if l.printed[key] == nil {
			l.printed[key] = make(map[string]printedUpdate)
		}
		stalled := Update{Part: "#stalled"}
		if why := l.Noun.stalled(t); why != "" {
			stalled.Text = "Stalled: " + why
		}
		for _, news := range append(l.Noun.Updates(t), stalled) {
			before, now := l.printed[key][news.Part], l.Env.Now()
			counts := news.ThrottleKey != "" && news.ThrottleKey == before.ThrottleKey && now.Sub(before.at) < time.Second && !l.Noun.IsFinished(t)
			if news == before.Update || counts {
				continue
			}
			l.printed[key][news.Part] = printedUpdate{news, now}
			if news.Text == "" {
				continue
			}
			if err := l.write(key, news); err != nil {
				return err
			}
		}
	}
	for key := range l.printed {
		if slices.Contains(keys, key) {
			continue
		}
		delete(l.printed, key)
		gone := "deleted"
		if l.Noun.GetEnded != nil {
			gone += ": describe shows what happened to it"
		}
		if err := l.write(key, Update{Text: gone}); err != nil {
			return err
		}
	}
	return nil
}

func (l *lines[T]) write(key types.NamespacedName, news Update) error {
	about := ""
	if news.Part != "" && news.Part[0] != '#' {
		about = " " + news.Part + ":"
	}
	_, err := fmt.Fprintln(l.out, cli.Clean(fmt.Sprintf("%s %s%s %s", cli.Exact(l.Env.Now()), key, about, news.Text)))
	return err
}
