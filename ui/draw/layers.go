package draw

// Edge connects vertex From with vertex To, which needs it. Both are indexes.
type Edge struct{ From, To int }

// layered is a graph whose vertices are in layers. An edge that crosses layers has a waypoint in
// each of them.
type layered struct {
	layers [][]int // vertices by layer, from top to bottom; waypoints are numbered after the boxes
	up     [][]int // neighbors in the previous layer, by vertex
	down   [][]int // neighbors in the next layer, by vertex
	routes [][]int // vertices of each edge, including both ends
}

// Ranks returns the layer of each vertex: the first layer after the layers of all vertices that the
// vertex needs. Vertices on a cycle, which no valid definition contains, are in the first layer.
func Ranks(n int, edges []Edge) []int {
	waiting, next := make([]int, n), make([][]int, n)
	for _, e := range edges {
		waiting[e.To]++
		next[e.From] = append(next[e.From], e.To)
	}
	ranks := make([]int, n)
	var ready []int
	for v := range n {
		if waiting[v] == 0 {
			ready = append(ready, v)
		}
	}
	done := make([]bool, n)
	for len(ready) > 0 {
		v := ready[0]
		ready, done[v] = ready[1:], true
		for _, to := range next[v] {
			ranks[to] = max(ranks[to], ranks[v]+1)
			if waiting[to]--; waiting[to] == 0 {
				ready = append(ready, to)
			}
		}
	}
	for v := range n {
		if !done[v] {
			ranks[v] = 0
		}
	}
	return ranks
}

func newLayered(n int, edges []Edge) *layered {
	ranks := Ranks(n, edges)
	g := &layered{up: make([][]int, n), down: make([][]int, n)}
	for v, rank := range ranks {
		g.add(v, rank)
	}
	for _, e := range edges {
		route := []int{e.From}
		for rank := ranks[e.From] + 1; rank < ranks[e.To]; rank++ {
			route = append(route, g.waypoint(rank))
		}
		route = append(route, e.To)
		g.routes = append(g.routes, route)
		if ranks[e.From] < ranks[e.To] {
			g.connect(route)
		}
	}
	return g
}

func (g *layered) add(v, rank int) {
	for len(g.layers) <= rank {
		g.layers = append(g.layers, nil)
	}
	g.layers[rank] = append(g.layers[rank], v)
}

func (g *layered) waypoint(rank int) int {
	v := len(g.up)
	g.up, g.down = append(g.up, nil), append(g.down, nil)
	g.add(v, rank)
	return v
}

func (g *layered) connect(route []int) {
	for i := 1; i < len(route); i++ {
		a, b := route[i-1], route[i]
		g.down[a], g.up[b] = append(g.down[a], b), append(g.up[b], a)
	}
}
