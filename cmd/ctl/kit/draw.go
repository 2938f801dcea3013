package kit

import (
	"fmt"
	"io"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/cli"
)

// Stream returns the stream of a live display: standard error if the format prints data, because
// standard output must contain only the data.
func (k *Kit) Stream(format *cli.Format) io.Writer {
	if format.Data() {
		return k.Env.Err
	}
	return k.Env.Out
}

// drawer returns a function to call after each change, and every second to update ages.
func (p *Session[T]) drawer(format *cli.Format, single, namespaces bool) func([]T) error {
	if out := p.Stream(format); p.Env.CanRedraw(out) {
		return (&display[T]{Session: p, out: out, single: single, namespaces: namespaces, screen: p.Screen(out)}).draw
	}
	return p.lines(format).draw
}

func (p *Session[T]) lines(format *cli.Format) *lines[T] {
	return &lines[T]{Session: p, out: p.Stream(format), printed: make(map[types.NamespacedName]map[string]printedUpdate)}
}

// display redraws a block of a terminal in place.
type display[T any] struct {
	*Session[T]
	out                io.Writer
	screen             *cli.Screen
	single, namespaces bool
}

func (d *display[T]) draw(list []T) error {
	if len(list) == 0 {
		return nil
	}
	v := d.ViewOn(d.out)
	if !d.single {
		return d.screen.Draw(append(d.stalled(v, list), d.Noun.Table(v, list, d.namespaces, false)...))
	}
	return d.screen.Draw(d.Noun.Render(v, list[0]))
}

// Render returns what a terminal shows for a followed object.
func (n *Noun[T]) Render(v View, t T) []string {
	return append([]string{v.Paint.Text(cli.Bold, n.Key(t).String())}, n.StatusLines(v, t)...)
}

// stalled returns once for all objects why the daemon processes nothing.
func (d *display[T]) stalled(v View, list []T) (out []string) {
	for _, t := range list {
		if why := d.Noun.stalled(t); why != "" {
			return v.Wrapped("Stalled", why, cli.Red)
		}
	}
	return nil
}

// lines writes a line for each change.
type lines[T any] struct {
	*Session[T]
	out     io.Writer
	printed map[types.NamespacedName]map[string]printedUpdate
}

type printedUpdate struct {
	Update
	at time.Time
}

// draw writes a line for each changed text, but at most once a second if only counts change. The
// next call writes what was skipped.
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
