package draw_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"scute.dev/ui/draw"
)

// TestPlace checks that, in any graph, boxes do not overlap, everything is within the drawing, and needed tasks are
// further to the left.
func TestPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "boxes")
		var edges []draw.Edge
		for to := 1; to < n; to++ {
			for _, from := range rapid.SliceOfNDistinct(rapid.IntRange(0, to-1), 0, 3, rapid.ID[int]).Draw(t, "needs") {
				edges = append(edges, draw.Edge{From: from, To: to})
			}
		}
		g := draw.Layout(n, edges)
		for i, a := range g.Boxes {
			if a.X < 0 || a.Y < 0 || a.X+draw.BoxWidth > g.Width || a.Y+draw.BoxHeight > g.Height {
				t.Fatalf("box %d at %v is not within %d x %d", i, a, g.Width, g.Height)
			}
			for j, b := range g.Boxes[:i] {
				if abs(a.X-b.X) < draw.BoxWidth && abs(a.Y-b.Y) < draw.BoxHeight {
					t.Fatalf("boxes %d and %d overlap: %v %v", j, i, b, a)
				}
			}
		}
		for i, e := range edges {
			if g.Boxes[e.From].X >= g.Boxes[e.To].X || g.Paths[i] == "" {
				t.Fatalf("edge %v does not lead to the right", e)
			}
		}
	})
}

// TestPlaceOfACycle checks that a cyclic graph, which no valid definition has, can be drawn.
func TestPlaceOfACycle(t *testing.T) {
	g := draw.Layout(3, []draw.Edge{{From: 0, To: 1}, {From: 1, To: 0}, {From: 1, To: 2}})
	if len(g.Boxes) != 3 || len(g.Paths) != 3 {
		t.Errorf("Place = %+v", g)
	}
}

// TestFewCrossings checks that edges that cross in the order of the definition do not cross in the drawing.
func TestFewCrossings(t *testing.T) {
	g := draw.Layout(4, []draw.Edge{{From: 0, To: 3}, {From: 1, To: 2}})
	if g.Boxes[0].Y < g.Boxes[1].Y != (g.Boxes[3].Y < g.Boxes[2].Y) {
		t.Errorf("the edges cross: %v", g.Boxes)
	}
}

func TestAxis(t *testing.T) {
	begin := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	a := draw.Axis{Begin: begin, End: begin.Add(90 * time.Second), Width: 900}
	if x := a.X(begin.Add(45 * time.Second)); x != 450 {
		t.Errorf("the middle is at %d, want 450", x)
	}
	if x, width := a.Bar(begin.Add(90*time.Second), begin.Add(90*time.Second)); x+width > 900 || width < 1 {
		t.Errorf("a bar at the end is at %d with width %d", x, width)
	}
	ticks := a.Ticks(8)
	if len(ticks) == 0 || len(ticks) > 8 || ticks[1].After != 15*time.Second {
		t.Errorf("ticks = %v", ticks)
	}
	if got := (draw.Axis{Begin: begin, End: begin, Width: 900}).Ticks(8); len(got) > 1 {
		t.Errorf("ticks without a duration = %v", got)
	}
}

func abs(n int) int { return max(n, -n) }
