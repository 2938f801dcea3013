package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/testbed"
)

// measureSurges compares surges by scute with the same surges by hand, alternately. It returns a cluster as the real
// controllers have written it.
func (b *bench) measureSurges(ctx context.Context) (model *specimen, err error) {
	err = b.onGround(ctx, testbed.Options{RateLimited: !b.unlimited}, func(ctx context.Context, g *ground) error {
		pairs := []*pair{newPair(g, "rollout", v1alpha1.MethodRolloutSurge), newPair(g, "replicas", v1alpha1.MethodSurge)}
		if b.only == "watch" {
			pairs = pairs[:1]
		}
		b.say("making clusters of %d on the real controllers", replicas)
		if err := makeAll(ctx, pairs); err != nil {
			return err
		}
		if model, err = captureControlPlane(ctx, pairs[0].hand); err != nil || b.only == "watch" {
			return err
		}
		for i := range b.rounds {
			for _, p := range pairs {
				if err := p.round(ctx, i); err != nil {
					return err
				}
				b.say("%s, round %d of %d: %s", p.name, i+1, b.rounds, p.last())
			}
		}
		worst := 0.0
		for _, p := range pairs {
			worst = max(worst, p.figures(b))
		}
		b.figure("surge.ratio", worst, "ratio")
		return nil
	})
	return model, err
}

func makeAll(ctx context.Context, pairs []*pair) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range pairs {
		for _, l := range []*lane{p.hand, p.scute} {
			group.Go(func() error {
				if err := l.make(ctx); err != nil {
					return err
				}
				return l.rest(ctx)
			})
		}
	}
	return group.Wait()
}

// pair is one method of a surge, by hand and by scute, each with its own cluster.
type pair struct {
	name        string
	hand, scute *lane
	byHand      []surge
	byScute     []surge
}

func newPair(g *ground, name string, method v1alpha1.RepairMethod) *pair {
	return &pair{
		name:  name,
		hand:  &lane{ground: g, name: name + "-hand", method: method, hand: true},
		scute: &lane{ground: g, name: name + "-scute", method: method},
	}
}

// round makes a surge of each. The order alternates between rounds.
func (p *pair) round(ctx context.Context, i int) error {
	order := []*lane{p.hand, p.scute}
	if i%2 == 1 {
		order = []*lane{p.scute, p.hand}
	}
	for _, l := range order {
		s, err := l.run(ctx)
		if err != nil {
			return fmt.Errorf("surge of %s: %w", l.name, err)
		}
		if l.hand {
			p.byHand = append(p.byHand, s)
		} else {
			p.byScute = append(p.byScute, s)
		}
	}
	return nil
}

func (p *pair) last() string {
	h, s := p.byHand[len(p.byHand)-1], p.byScute[len(p.byScute)-1]
	tell := func(s surge) string {
		var parts []string
		for _, d := range []time.Duration{s.mark, s.newcomer, s.end, s.cpu} {
			parts = append(parts, fmt.Sprintf("%.2f", d.Seconds()))
		}
		return strings.Join(parts, " ") + " s"
	}
	return fmt.Sprintf("mark, new machine, end, CPU: by hand %s, by scute %s", tell(h), tell(s))
}

// figures prints the figures of the pair and returns the ratio.
func (p *pair) figures(b *bench) float64 {
	of := func(all []surge, what func(surge) time.Duration) float64 {
		var v []float64
		for _, s := range all {
			v = append(v, what(s).Seconds())
		}
		return median(v)
	}
	newcomer, end := func(s surge) time.Duration { return s.newcomer }, func(s surge) time.Duration { return s.end }
	var ratios []float64
	for i := range p.byHand {
		ratios = append(ratios, p.byScute[i].end.Seconds()/p.byHand[i].end.Seconds())
	}
	ratio := median(ratios)
	name := "surge." + p.name
	b.figure(name+".ratio", ratio, "ratio")
	b.figure(name+".time", of(p.byScute, end), "s")
	b.figure(name+".hand.time", of(p.byHand, end), "s")
	b.figure(name+".newcomer", of(p.byScute, newcomer), "s")
	b.figure(name+".hand.newcomer", of(p.byHand, newcomer), "s")
	b.figure(name+".mark", of(p.byScute, func(s surge) time.Duration { return s.mark }), "s")
	b.figure(name+".cpu", of(p.byScute, func(s surge) time.Duration { return s.cpu }), "s")
	return ratio
}
