package compaction

// greedy has the added candidates of highest density, until they exceed the budget: the solution of
// the knapsack problem in which a candidate may be divided. The candidate of lowest density is
// divided. It is on top of a heap.
type greedy struct {
	budget uint64
	heap   []weighed // a heap by density, the lowest first
	bytes  uint64    // of the heap; without its top at most budget, so it does not overflow
	value  float64   // of the heap
}

type weighed struct {
	density, value float64
	bytes          uint64
	index          int
}

func (g *greedy) reset() { g.heap, g.bytes, g.value = g.heap[:0], 0, 0 }

// add adds a candidate. Its size is at most the budget.
func (g *greedy) add(c *candidate, index int) {
	density := c.density()
	if g.bytes > g.budget && density <= g.heap[0].density {
		return
	}
	g.heap = append(g.heap, weighed{density, c.value, c.bytes, index})
	g.up()
	g.bytes += c.bytes
	g.value += c.value
	for g.bytes-g.heap[0].bytes > g.budget {
		top := g.heap[0]
		g.bytes -= top.bytes
		g.value -= top.value
		last := len(g.heap) - 1
		g.heap[0] = g.heap[last]
		g.heap = g.heap[:last]
		g.down()
	}
}

func (g *greedy) up() {
	h, i := g.heap, len(g.heap)-1
	for i > 0 && h[i].density < h[(i-1)/2].density {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		i = (i - 1) / 2
	}
}

func (g *greedy) down() {
	h, i := g.heap, 0
	for {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < len(h); c++ {
			if h[c].density < h[least].density {
				least = c
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// upper returns a value that no set within the budget exceeds.
func (g *greedy) upper() float64 {
	if g.bytes <= g.budget {
		return g.value
	}
	return g.value - float64(g.bytes-g.budget)*g.heap[0].density
}

// lower returns the value of set, a set within the budget. It is at least half of the best value.
func (g *greedy) lower() float64 {
	if g.bytes <= g.budget {
		return g.value
	}
	return max(g.value-g.heap[0].value, g.heap[0].value)
}

// set appends the indexes of the candidates of lower to dst.
func (g *greedy) set(dst []int) []int {
	h := g.heap
	if g.bytes > g.budget {
		if top := h[0]; top.value > g.value-top.value {
			return append(dst, top.index)
		}
		h = h[1:]
	}
	for _, w := range h {
		dst = append(dst, w.index)
	}
	return dst
}

// Limits of an exact solution.
const (
	maxStates = 1 << 10
	maxNodes  = 1 << 20
)

// exact solves a knapsack problem to which candidates are added. Its states are sets within the
// budget that no other set beats in both size and value, so both ascend.
//
// With more than maxStates states, of those whose sizes differ by less than 1/maxStates of the
// budget only the most valuable is kept. Then the solution is close to the best.
type exact struct {
	budget       uint64
	states, next []state
	nodes        []node
}

type state struct {
	bytes uint64
	value float64
	node  int32
}

// node is the last candidate of a set and the node of the others. Sets share nodes.
type node struct {
	index    int
	previous int32 // -1: no others
}

// reset starts with the set of one candidate.
func (e *exact) reset(c *candidate, index int) {
	e.nodes = append(e.nodes[:0], node{index, -1})
	e.states = append(e.states[:0], state{c.bytes, c.value, 0})
}

// add adds a candidate. It returns false if there is no memory for more.
func (e *exact) add(c *candidate, index int) bool {
	if len(e.nodes)+len(e.states) > maxNodes {
		return false
	}
	// Merge the states with copies of them to which the candidate is added.
	out, old := e.next[:0], 0
	push := func(s state) {
		if n := len(out); n == 0 || s.value > out[n-1].value {
			out = append(out, s)
		}
	}
	for _, s := range e.states {
		if c.bytes > e.budget-s.bytes {
			break
		}
		s.bytes += c.bytes
		s.value += c.value
		for old < len(e.states) && (e.states[old].bytes < s.bytes ||
			e.states[old].bytes == s.bytes && e.states[old].value >= s.value) {
			push(e.states[old])
			old++
		}
		if s.value > out[len(out)-1].value {
			e.nodes = append(e.nodes, node{index, s.node})
			s.node = int32(len(e.nodes) - 1)
			push(s)
		}
	}
	for _, s := range e.states[old:] {
		push(s)
	}
	e.states, e.next = out, e.states
	e.thin()
	return true
}

// thin drops states if there are too many.
func (e *exact) thin() {
	if len(e.states) <= maxStates {
		return
	}
	kept := e.states[:0]
	slot := func(s state) uint64 { return s.bytes / (e.budget/maxStates + 1) }
	for i, s := range e.states {
		if i+1 == len(e.states) || slot(s) != slot(e.states[i+1]) {
			kept = append(kept, s)
		}
	}
	e.states = kept
}

// best returns the most valuable state.
func (e *exact) best() state { return e.states[len(e.states)-1] }

// set returns the indexes of the candidates of a state.
func (e *exact) set(at int32) (set []int) {
	for ; at >= 0; at = e.nodes[at].previous {
		set = append(set, e.nodes[at].index)
	}
	return set
}
