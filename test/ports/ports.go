// Package ports reserves free TCP ports of 127.0.0.1.
//
// It opens no connections and runs no servers.
package ports

import (
	"errors"
	"fmt"
	"net"
	"sync"
)

// Blocks are below the range that Linux uses for the ports of outgoing connections (32768 and up), so that none of them
// is used between its reservation and the moment a server listens on it.
const (
	first     = 20000
	end       = 32500
	blockSize = 500
)

// Block is a range of ports reserved for one owner. No two owners on a machine have the same block: the owner listens
// on its first port, and the kernel frees that port when the owner ends for any reason.
type Block struct {
	claim net.Listener
	base  int

	mu   sync.Mutex
	next int
}

// Reserve reserves the first free block.
func Reserve() (*Block, error) {
	var errs []error
	for base := first; base+blockSize <= end; base += blockSize {
		l, err := net.Listen("tcp", address(base))
		if err == nil {
			return &Block{claim: l, base: base, next: base + 1}, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("reserving %d ports between %d and %d: every block is taken: %w", blockSize, first, end, errors.Join(errs...))
}

// One returns a port on which no process listens. It never returns the same port again.
func (b *Block) One() (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for ; b.next < b.base+blockSize; b.next++ {
		l, err := net.Listen("tcp", address(b.next))
		if err != nil {
			continue // another program uses it
		}
		l.Close()
		b.next++
		return b.next - 1, nil
	}
	return 0, fmt.Errorf("all %d ports from %d on are used up", blockSize, b.base)
}

// Rest returns the remaining range of the block, inclusive. After that, One returns an error.
func (b *Block) Rest() (low, high int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	low, high = b.next, b.base+blockSize-1
	b.next = b.base + blockSize
	return low, high
}

// Release releases the block.
func (b *Block) Release() error { return b.claim.Close() }

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
