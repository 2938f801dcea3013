package draw

import (
	"fmt"
	"strings"
)

// Sizes in SVG user units.
const (
	BoxWidth  = 176
	BoxHeight = 44
	gapX      = 40
	gapY      = 16
	waypoint  = 10 // height
	margin    = 6
)

// Point is a position in a drawing.
type Point struct{ X, Y int }

// Graph is the layout of boxes and of the edges between them.
type Graph struct {
	Width, Height int
	// Boxes are the upper left corners, by vertex.
	Boxes []Point
	// Paths are the edges as SVG path data, by edge.
	Paths []string
}

// Layout arranges n boxes in layers. Each box is to the right of all boxes that it needs.
func Layout(n int, edges []Edge) Graph {
	g := newLayered(n, edges)
	g.reduceCrossings()
	y := g.rows(n)
	out := Graph{Boxes: make([]Point, n)}
	for rank, vertices := range g.layers {
		for _, v := range vertices {
			if v < n {
				out.Boxes[v] = Point{margin + rank*(BoxWidth+gapX), int(y[v]) - BoxHeight/2}
			}
			out.Height = max(out.Height, int(y[v])+BoxHeight/2+margin)
		}
	}
	out.Width = 2*margin + len(g.layers)*(BoxWidth+gapX) - gapX
	for _, route := range g.routes {
		out.Paths = append(out.Paths, path(route, y, out.Boxes))
	}
	return out
}

// path returns the SVG path of an edge. It goes from the right side of the first box through the
// waypoints to the left side of the last box.
func path(route []int, y []float64, boxes []Point) string {
	from := boxes[route[0]]
	x, at := from.X+BoxWidth, from.Y+BoxHeight/2
	var b strings.Builder
	fmt.Fprintf(&b, "M%d %d", x, at)
	for _, v := range route[1:] {
		to := Point{x + gapX, int(y[v])}
		half := x + gapX/2
		fmt.Fprintf(&b, "C%d %d %d %d %d %d", half, at, half, to.Y, to.X, to.Y)
		if v >= len(boxes) { // a waypoint: cross the layer
			fmt.Fprintf(&b, "H%d", to.X+BoxWidth)
		}
		x, at = to.X+BoxWidth, to.Y
	}
	return b.String()
}
