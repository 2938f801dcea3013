package page

import "scute.dev/eventlog"

// stream is a list of facts on a page.
type stream struct {
	View  *view
	Facts []Fact
	// Alone: all are about what the page is about.
	Alone bool
}

// Stream is a list of facts about anything.
func (f frame) Stream(facts []Fact) stream { return stream{View: f.view, Facts: facts} }

// Alone is a list of facts about what the page is about.
func (f frame) Alone(facts []Fact) stream { return stream{View: f.view, Facts: facts, Alone: true} }

// within is a part of a page that links to the page.
type within struct {
	View *view
	Of   any
}

// Within gives a part of the page the page.
func (v *view) Within(of any) within { return within{v, of} }

// choice is an option of a form.
type choice struct {
	Name, Value string
	Chosen      bool
}

// Kinds are the kinds of things that facts are about.
func (v *view) Kinds() []choice {
	asked := v.query.Get("kind")
	all := []choice{{Name: "anything", Chosen: asked == ""}}
	for _, kind := range []eventlog.Kind{eventlog.KindRun, eventlog.KindMove, eventlog.KindPause, eventlog.KindRemediation, eventlog.KindBackup, eventlog.KindDaemon} {
		all = append(all, choice{Name: string(kind), Value: string(kind), Chosen: asked == string(kind)})
	}
	return all
}

// Asked is a parameter of the page.
func (v *view) Asked(name string) string { return v.query.Get(name) }
