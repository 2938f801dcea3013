package page

import "strconv"

// rowsPerPage is the number of rows of one page of a long list.
const rowsPerPage = 50

// Long is a long list, shown in pages of Rows. Param is the parameter with the number of the page, and Anchor the list's anchor, for example "#list".
type Long struct {
	Param, Label, Anchor string
	Rows                 int
}

// Pages is the position in a list of All elements, with links to the previous and next page.
type Pages struct {
	Label            string
	All, Page, Pages int
	Before, Next     string
}

// paged returns the rows that a parameter selects, by default those of the first page.
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
