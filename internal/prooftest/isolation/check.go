package isolation

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// element is a value that one transaction writes once.
type element int64

// transaction has the reads and writes of a committed transaction. Its begin and end are positions
// on a clock of all goroutines.
type transaction struct {
	begin, end int64

	lists  []listRead
	sets   []setRead
	adds   map[element]int // to which set
	gone   []element       // that it deleted from their sets
	ranges []setRange      // of set 0 that it deleted, whatever was there
	append map[element]int // to which list
}

// setRange is the elements of set 0 with from <= element < to. No two transactions delete one element by a range.
type setRange struct{ from, to element }

func (d setRange) has(e element) bool { return d.from <= e && e < d.to }

// listRead is a read of a list by its key: the elements in the order in which they were appended.
type listRead struct {
	list int
	seen []element
}

// setRead is a read of all elements of a set with from <= element < to, by a range of keys.
type setRead struct {
	set      int
	from, to element
	seen     map[element]bool
}

// without returns the parts of a read outside ranges that its transaction has deleted: there it sees nothing,
// whether the delete is undone later or not.
func (r setRead) without(ranges []setRange) []setRead {
	parts := []setRead{r}
	for _, d := range ranges {
		var next []setRead
		for _, p := range parts {
			if p.set != 0 || d.to <= p.from || p.to <= d.from {
				next = append(next, p)
				continue
			}
			for _, q := range []setRange{{p.from, d.from}, {d.to, p.to}} {
				if q.from < q.to {
					next = append(next, setRead{set: p.set, from: q.from, to: q.to, seen: p.seen})
				}
			}
		}
		parts = next
	}
	return parts
}

// dependency is an edge between transactions: one comes before the other, whose index is to.
type dependency struct {
	to  int
	why string
}

// graph has the transactions as its first nodes, and then the ends of transactions in the order of
// time.
type graph struct {
	txs   []transaction
	edges [][]dependency
}

// check reports whether some order of the transactions explains all that they have read, and is
// compatible with real time. It uses no timestamps: that elements are unique determines which
// transaction comes before which,
//
//	wr   a read comes after the transaction that wrote an element which it sees
//	rw   a read comes before the transaction that wrote an element which it does not see, or
//	     deleted an element which it sees
//	ww   the elements of a list are in the order of the transactions that appended them
//	time a transaction comes before those that began after its end
//
// and there is an order unless there is a cycle. An element in a range that was deleted was added after that if it is
// there at the end; if not, and no other transaction has deleted it, that one has. A deleted element that a read does not see says
// nothing: the read may come before or after both.
//
// last is the transaction that read everything at the end: an element that it does not see was
// lost, unless it was deleted.
func check(txs []transaction, last transaction) error {
	g := &graph{txs: append(slices.Clone(txs), last)}
	g.edges = make([][]dependency, len(g.txs), 2*len(g.txs))
	if err := g.addLists(); err != nil {
		return err
	}
	if err := g.addSets(); err != nil {
		return err
	}
	g.addTime()
	if c := g.cycle(); c != nil {
		return fmt.Errorf("a cycle of transactions: %s", g.describe(c))
	}
	return nil
}

func (g *graph) add(from, to int, why string) {
	if from != to {
		g.edges[from] = append(g.edges[from], dependency{to, why})
	}
}

// addLists adds the dependencies by lists. The longest version of a list has the order of its
// elements, and all others are prefixes of it.
func (g *graph) addLists() error {
	writer, longest := map[element]int{}, map[int][]element{}
	for i, tx := range g.txs {
		for e := range tx.append {
			writer[e] = i
		}
		for _, r := range tx.lists {
			if len(r.seen) > len(longest[r.list]) {
				longest[r.list] = r.seen
			}
		}
	}
	found := map[element]bool{}
	for list, order := range longest {
		for i, e := range order {
			w, ok := writer[e]
			if !ok || g.txs[w].append[e] != list || found[e] {
				return fmt.Errorf("list %d has element %d, which no transaction that committed has appended once", list,
					e)
			}
			if found[e] = true; i > 0 {
				g.add(writer[order[i-1]], w, fmt.Sprintf("ww list %d", list))
			}
		}
	}
	for e, w := range writer {
		if !found[e] {
			return fmt.Errorf("element %d of list %d was lost", e, g.txs[w].append[e])
		}
	}
	for i, tx := range g.txs {
		for _, r := range tx.lists {
			order, n := longest[r.list], len(r.seen)
			if !slices.Equal(order[:n], r.seen) {
				return fmt.Errorf("list %d was read as %v and as %v", r.list, r.seen, order)
			}
			if n > 0 {
				g.add(writer[r.seen[n-1]], i, fmt.Sprintf("wr list %d", r.list))
			}
			if n < len(order) {
				g.add(i, writer[order[n]], fmt.Sprintf("rw list %d", r.list))
			}
		}
	}
	return nil
}

// addSets adds the dependencies by sets.
func (g *graph) addSets() error {
	type life struct{ set, added, deleted int }
	elements := map[element]life{}
	for i, tx := range g.txs {
		for e, set := range tx.adds {
			elements[e] = life{set, i, -1}
		}
	}
	for i, tx := range g.txs {
		for _, e := range tx.gone {
			l, ok := elements[e]
			if !ok || l.deleted >= 0 {
				return fmt.Errorf("element %d was deleted twice, or never added", e)
			}
			l.deleted = i
			elements[e] = l
			g.add(l.added, i, fmt.Sprintf("ww set %d", l.set))
		}
	}
	kept := map[element]bool{} // that the last transaction has seen
	for _, r := range g.txs[len(g.txs)-1].sets {
		maps.Copy(kept, r.seen)
	}
	for i, tx := range g.txs {
		for _, d := range tx.ranges {
			for e, l := range elements {
				switch {
				case l.set != 0 || !d.has(e) || l.deleted >= 0: // of a row that was deleted otherwise, it says nothing
				case kept[e]:
					g.add(i, l.added, "ww set 0")
				default:
					l.deleted = i
					elements[e] = l
					g.add(l.added, i, "ww set 0")
				}
			}
		}
	}
	for i, tx := range g.txs {
		for _, r := range tx.sets {
			for e := range r.seen {
				if l, ok := elements[e]; !ok || l.set != r.set {
					return fmt.Errorf("set %d has element %d, which no transaction that committed has added", r.set, e)
				}
			}
			for e, l := range elements {
				switch {
				case l.set != r.set || e < r.from || e >= r.to:
				case r.seen[e]:
					g.add(l.added, i, fmt.Sprintf("wr set %d", r.set))
					if l.deleted >= 0 {
						g.add(i, l.deleted, fmt.Sprintf("rw set %d", r.set))
					}
				case l.deleted < 0:
					g.add(i, l.added, fmt.Sprintf("rw set %d", r.set))
				}
			}
		}
	}
	return nil
}

// addTime adds the dependencies by real time, with a node for each end:
//
//	tx ──▶ its end ──▶ the next end ──▶ …
//	                        └──▶ each transaction that began between the two ends
func (g *graph) addTime() {
	order := make([]int, len(g.txs))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(g.txs[a].end - g.txs[b].end) })
	first := len(g.txs)
	g.edges = append(g.edges, make([][]dependency, len(order))...)
	for k, i := range order {
		g.add(i, first+k, "time")
		if k > 0 {
			g.add(first+k-1, first+k, "time")
		}
	}
	for i, tx := range g.txs {
		k, _ := slices.BinarySearchFunc(order, tx.begin, func(j int, begin int64) int {
			return int(g.txs[j].end - begin)
		})
		if k > 0 {
			g.add(first+k-1, i, "time")
		}
	}
}

// cycle returns the nodes of a cycle, or nil.
func (g *graph) cycle() []int {
	const unseen, open, done = 0, 1, 2
	state := make([]int8, len(g.edges))
	next := make([]int, len(g.edges))
	for root := range g.edges {
		if state[root] != unseen {
			continue
		}
		path := []int{root}
		state[root] = open
		for len(path) > 0 {
			at := path[len(path)-1]
			if next[at] == len(g.edges[at]) {
				state[at] = done
				path = path[:len(path)-1]
				continue
			}
			to := g.edges[at][next[at]].to
			next[at]++
			switch state[to] {
			case open:
				return path[slices.Index(path, to):]
			case unseen:
				state[to] = open
				path = append(path, to)
			}
		}
	}
	return nil
}

// describe returns the transactions of a cycle and why each one comes before the next.
func (g *graph) describe(cycle []int) string {
	var parts []string
	for i, at := range cycle {
		to := cycle[(i+1)%len(cycle)]
		d := g.edges[at][slices.IndexFunc(g.edges[at], func(d dependency) bool { return d.to == to })]
		if at < len(g.txs) {
			parts = append(parts, fmt.Sprint(at))
		}
		parts = append(parts, "-"+d.why+"->")
	}
	return strings.Join(parts, " ")
}
