package page

import "strconv"

// listed is how many rows of a long list a page has.
const listed = 50

// Pages say which part of a list a page has, of All, and lead to the parts beside it.
type Pages struct {
	Label            string
	All, Page, Pages int
	Before, Next     string
}

// paged is the part of a list that a parameter of the page chooses, the first one if it is not there.
func paged[T any](v *view, name, label string, list []T) ([]T, Pages, error) {
	page, err := v.number(name)
	if err != nil {
		return nil, Pages{}, err
	}
	p := Pages{Label: label, All: len(list), Pages: (len(list) + listed - 1) / listed}
	p.Page = min(page, max(p.Pages-1, 0))
	switch p.Page {
	case 0:
	case 1:
		p.Before = v.With(name, "")
	default:
		p.Before = v.With(name, strconv.Itoa(p.Page-1))
	}
	if p.Page+1 < p.Pages {
		p.Next = v.With(name, strconv.Itoa(p.Page+1))
	}
	return list[p.Page*listed : min(len(list), (p.Page+1)*listed)], p, nil
}
