package arrowio

import "iter"

// inTurn returns what next returns until it returns nil.
func inTurn[T any](next func() *T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for v := next(); v != nil && yield(v); v = next() {
		}
	}
}

// ahead is inTurn with calls of next in a goroutine of its own, which runs while the caller uses
// the value returned before. The goroutine has ended when the iteration ends, however that ends. A
// panic in next becomes a panic in the caller.
//
// There are up to three values at a time: the value that the caller uses, the next one in the
// channel, and the value that the goroutine makes, or holds until the channel has room.
func ahead[T any](next func() *T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		ready, stop := make(chan *T, 1), make(chan struct{})
		var panicked any
		go func() {
			defer close(ready)
			defer func() { panicked = recover() }()
			for v := range inTurn(next) {
				select {
				case ready <- v:
				case <-stop:
				}
				select {
				case <-stop: // also if the channel had room
					return
				default:
				}
			}
		}()
		defer func() {
			close(stop)
			for range ready { // until the goroutine has ended
			}
			if panicked != nil {
				panic(panicked)
			}
		}()
		for v := range ready {
			if !yield(v) {
				return
			}
		}
	}
}
