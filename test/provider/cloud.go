package provider

import "sync"

// Cloud is what the out-of-band reconcilers of all sides act on, and the witness of who did.
type Cloud struct {
	mu   sync.Mutex
	acts map[string][]Acts // by the name of what is acted on
}

// Acts are how often a side has acted, before another side did.
type Acts struct {
	Side  string
	Count int
}

func (c *Cloud) act(side, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.acts == nil {
		c.acts = make(map[string][]Acts)
	}
	list := c.acts[name]
	if len(list) == 0 || list[len(list)-1].Side != side {
		list = append(list, Acts{Side: side})
	}
	list[len(list)-1].Count++
	c.acts[name] = list
}

// Acts are who has acted on what has a name (namespace/name), in turn.
func (c *Cloud) Acts(name string) []Acts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Acts(nil), c.acts[name]...)
}
