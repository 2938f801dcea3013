package page

import "strconv"

// listed is how many rows of a long list a page has.
const listed = 50

// Long is a list of which a page has Rows at once. Param is the parameter of the page that chooses them, and Anchor where the list begins, as
// "#list".
type Long struct {
	Param, Label, Anchor string
	Rows                 int
}

// Pages say which part of a list a page has, of All, and lead to the parts beside it.
type Pages struct {
	Label            string
	All, Page, Pages int
	Before, Next     string
}

// paged is the part of a list that a parameter of the page chooses, the first one if it is not there.
func paged[T any](v *view, of Long, list []T) ([]T, Pages, error) {
	page, err := v.number(of.Param)
	if err != nil {
		return nil, Pages{}, err
	}
	p := Pages{Label: of.Label, All: len(list), Pages: (len(list) + of.Rows - 1) / of.Rows}
	p.Page = min(page, max(p.Pages-1, 0))
	switch p.Page {
	case 0:
	case 1:
		p.Before = v.With(of.Param, "") + of.Anchor
	default:
		p.Before = v.With(of.Param, strconv.Itoa(p.Page-1)) + of.Anchor
	}
	if p.Page+1 < p.Pages {
		p.Next = v.With(of.Param, strconv.Itoa(p.Page+1)) + of.Anchor
	}
	return list[p.Page*of.Rows : min(len(list), (p.Page+1)*of.Rows)], p, nil
}
