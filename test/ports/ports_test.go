package ports

import (
	"fmt"
	"net"
	"testing"
)

func TestBlocksDoNotOverlap(t *testing.T) {
	a, b := reserve(t), reserve(t)
	seen := map[int]bool{}
	for _, block := range []*Block{a, b, a, b} {
		port, err := block.One()
		if err != nil {
			t.Fatal(err)
		}
		if seen[port] {
			t.Errorf("port %d was returned twice", port)
		}
		seen[port] = true
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Errorf("port %d: %v", port, err)
			continue
		}
		defer l.Close()
	}
	low, high := a.Rest()
	if low > high || seen[low] {
		t.Errorf("Rest = %d to %d", low, high)
	}
	if port, err := a.One(); err == nil {
		t.Errorf("One after Rest = %d, want an error", port)
	}
}

func TestOneSkipsTakenPorts(t *testing.T) {
	b := reserve(t)
	first, err := b.One()
	if err != nil {
		t.Fatal(err)
	}
	taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	b.next = first
	second, err := b.One()
	if err != nil {
		t.Fatal(err)
	}
	if second == first {
		t.Errorf("port %d was returned although a process listens on it", first)
	}
}

func reserve(t *testing.T) *Block {
	t.Helper()
	b, err := Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Release(); err != nil {
			t.Error(err)
		}
	})
	return b
}
