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
// what it has returned before. It has ended when the iteration ends, however that ends. A panic of
// next becomes one of the caller.
//
// There are up to three values at a time: one that the caller uses, one that waits, and one that
// the goroutine makes or that waits for room.
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
					return
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
