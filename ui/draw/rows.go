package draw

const rounds = 8

// rows returns the vertical center of each vertex: near its neighbors, without overlaps.
func (g *layered) rows(n int) []float64 {
	y := make([]float64, len(g.up))
	for _, vertices := range g.layers {
		at := 0.0
		for i, v := range vertices {
			if i > 0 {
				at += minDistance(vertices[i-1], v, n)
			}
			y[v] = at
		}
	}
	for i := range rounds {
		neighbors := g.up
		if i%2 == 1 {
			neighbors = g.down
		}
		for _, vertices := range g.layers {
			align(vertices, y, neighbors, n)
		}
	}
	shift(y)
	return y
}

// minDistance returns the minimum distance between the centers of two vertices.
func minDistance(a, b, n int) float64 {
	return (height(a, n) + height(b, n)) / 2
}

func height(v, n int) float64 {
	if v < n {
		return BoxHeight + gapY
	}
	return waypoint + gapY
}

// align moves the vertices of a layer as close to the means of their neighbors as the minimum
// distances allow. It computes the positions once from the top and once from the bottom, and takes
// the mean of both, so that it prefers neither direction.
func align(vertices []int, y []float64, neighbors [][]int, n int) {
	wanted := make([]float64, len(vertices))
	for i, v := range vertices {
		wanted[i] = y[v]
		if len(neighbors[v]) > 0 {
			wanted[i] = mean(neighbors[v], y)
		}
	}
	down, up := make([]float64, len(vertices)), make([]float64, len(vertices))
	for i := range vertices {
		down[i] = wanted[i]
		if i > 0 {
			down[i] = max(down[i], down[i-1]+minDistance(vertices[i-1], vertices[i], n))
		}
	}
	for i := len(vertices) - 1; i >= 0; i-- {
		up[i] = wanted[i]
		if i+1 < len(vertices) {
			up[i] = min(up[i], up[i+1]-minDistance(vertices[i], vertices[i+1], n))
		}
	}
	for i, v := range vertices {
		y[v] = (down[i] + up[i]) / 2
	}
}

func mean(of []int, y []float64) float64 {
	sum := 0.0
	for _, v := range of {
		sum += y[v]
	}
	return sum / float64(len(of))
}

// shift moves all vertices so that the topmost box touches the margin.
func shift(y []float64) {
	if len(y) == 0 {
		return
	}
	top := y[0]
	for _, at := range y {
		top = min(top, at)
	}
	for i := range y {
		y[i] += margin + BoxHeight/2 - top
	}
}
