package provider

import "sync"

// Cloud is what the out-of-band reconcilers of all sides change. It records which side acted.
type Cloud struct {
	mu   sync.Mutex
	acts map[string][]Acts // by the name of the object
}

// Acts is the number of acts of one side, up to the first act of another side.
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

// Acts returns the acts on an object (namespace/name), in order.
func (c *Cloud) Acts(name string) []Acts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Acts(nil), c.acts[name]...)
}
