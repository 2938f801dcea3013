package draw

import (
	"cmp"
	"slices"
)

// sweeps is the maximum number of sweeps, each of which sorts all layers. They alternate between
// left to right and right to left.
const sweeps = 12

// reduceCrossings sorts the vertices of each layer by the barycenters of their neighbors (Sugiyama,
// Tagawa and Toda, 1981). It keeps the order with the fewest crossings that it found. If two orders
// are equal in that, it keeps the earlier one; the first one is the order of the definition.
func (g *layered) reduceCrossings() {
	best, least := g.copyLayers(), g.crossings()
	for i := 0; i < sweeps && least > 0; i++ {
		if i%2 == 0 {
			for l := 1; l < len(g.layers); l++ {
				g.sort(l, l-1, g.up)
			}
		} else {
			for l := len(g.layers) - 2; l >= 0; l-- {
				g.sort(l, l+1, g.down)
			}
		}
		if n := g.crossings(); n < least {
			best, least = g.copyLayers(), n
		}
	}
	g.layers = best
}

func (g *layered) copyLayers() [][]int {
	out := make([][]int, len(g.layers))
	for i, l := range g.layers {
		out[i] = slices.Clone(l)
	}
	return out
}

func (g *layered) positions(layer int) map[int]int {
	at := make(map[int]int, len(g.layers[layer]))
	for i, v := range g.layers[layer] {
		at[v] = i
	}
	return at
}

// sort orders the vertices of a layer by the mean index of their neighbors in the layer by.
func (g *layered) sort(layer, by int, neighbors [][]int) {
	at, own := g.positions(by), g.positions(layer)
	mean := make(map[int]float64, len(own))
	for v, place := range own {
		mean[v] = float64(place)
		if n := len(neighbors[v]); n > 0 {
			sum := 0
			for _, u := range neighbors[v] {
				sum += at[u]
			}
			mean[v] = float64(sum) / float64(n)
		}
	}
	slices.SortStableFunc(g.layers[layer], func(a, b int) int { return cmp.Compare(mean[a], mean[b]) })
}

func (g *layered) crossings() (n int) {
	for l := 1; l < len(g.layers); l++ {
		at := g.positions(l)
		var ends []int // indexes of the edges' ends in this layer
		for _, v := range g.layers[l-1] {
			var of []int
			for _, u := range g.down[v] {
				of = append(of, at[u])
			}
			slices.Sort(of)
			for _, end := range of {
				// Each edge that was inserted before and that ends below this one crosses it.
				i, _ := slices.BinarySearch(ends, end+1)
				n += len(ends) - i
			}
			ends = append(ends, of...)
			slices.Sort(ends)
		}
	}
	return n
}
