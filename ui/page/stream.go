package page

import "scute.dev/cmd/ctl/show"

// stream is a list of facts on a page.
type stream struct {
	View  *view
	Facts []Fact
	// Alone is set if all facts are about the page's subject.
	Alone bool
}

// Stream returns a list of facts about any subject.
func (f frame) Stream(facts []Fact) stream { return stream{View: f.view, Facts: facts} }

// Alone returns a list of facts about the page's subject.
func (f frame) Alone(facts []Fact) stream { return stream{View: f.view, Facts: facts, Alone: true} }

// within is a part of a page with the view, which it needs for links.
type within struct {
	View *view
	Of   any
}

// Within returns a part of a page with its view.
func (v *view) Within(of any) within { return within{v, of} }

// choice is an option of a form.
type choice struct {
	Name, Value string
	Chosen      bool
}

// Kinds returns the kinds of aggregates, as options of the filter of facts.
func (v *view) Kinds() []choice {
	asked := v.Query.Get("kind")
	all := []choice{{Name: "anything", Chosen: asked == ""}}
	for _, kind := range show.Kinds() {
		all = append(all, choice{Name: kind, Value: kind, Chosen: asked == kind})
	}
	return all
}
