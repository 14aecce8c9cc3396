package crashfs

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"

	"github.com/oribi-db/oribi/vfs"
)

// State is one state that a crash may leave.
type State struct {
	Name  string   // describes which operations are lost and which are present
	Image *vfs.Mem // the caller's; all of it is durable
	Hash  [16]byte // of all names and contents: states with equal hashes are equal
	// Killed reports whether a kill of the process leaves this state, with everything that was
	// written.
	Killed         bool
	FlushForgotten bool // the disk acknowledged a flush and lost it
}

// Randoms is the number of random states for a point, and for each forgotten flush.
const Randoms = 4

// States iterates over the different states that a crash at the point may leave. A limit above 0 is
// the maximum number of states; the seed chooses them, a sixth of them with a forgotten flush. The
// first two, if they differ, are the states of Kill and Cut. The seed also determines the random
// states.
func (p *Point) States(seed uint64, limit int) iter.Seq[State] {
	return func(yield func(State) bool) {
		kept, forgotten := p.kept(seed), p.forgotten(seed)
		if limit <= 0 {
			limit = len(kept) + len(forgotten)
		} else {
			r := rand.New(rand.NewPCG(seed, 7))
			shuffle(r, kept[2:])
			shuffle(r, forgotten)
		}
		seen := map[[16]byte]bool{}
		give := func(plans []plan, upTo int) bool {
			for i, plan := range plans {
				if len(seen) >= upTo {
					break
				}
				s := State{Name: plan.name, Image: plan.base.build(plan.ops, plan.choose),
					FlushForgotten: plan.forgot, Killed: i == 0 && !plan.forgot}
				if s.Hash = hash(s.Image); seen[s.Hash] {
					continue // the same state without a forgotten flush
				}
				seen[s.Hash] = true
				if !yield(s) {
					return false
				}
			}
			return true
		}
		if give(kept, limit-min(limit/6, len(forgotten))) {
			give(forgotten, limit)
		}
	}
}

func shuffle(r *rand.Rand, plans []plan) {
	r.Shuffle(len(plans), func(i, k int) { plans[i], plans[k] = plans[k], plans[i] })
}

// plan describes how to build a state.
type plan struct {
	name   string
	base   *picture
	ops    []*op
	choose func(*op) part
	forgot bool
}

// kept returns the plans for a disk that keeps everything that it acknowledged.
func (p *Point) kept(seed uint64) (out []plan) {
	ops := p.now.pending
	add := func(name string, choose func(*op) part) {
		out = append(out, plan{name: name, base: p.now, ops: ops, choose: choose})
	}
	add("all", keepAll)
	add("nothing that was not synced", keepNone)
	names := func(o *op) bool { return o.names() }
	add("all names, no content", only(names))
	add("all content, no names", except(names))
	for _, o := range ops {
		this := func(other *op) bool { return other == o }
		add("all but "+o.String(), except(this))
		add("only "+o.String(), only(this))
		if o.names() {
			add("all content and "+o.String(), func(other *op) part {
				if other.names() {
					return only(this)(other)
				}
				return part{}
			})
			continue
		}
		add("all names and "+o.String(), only(func(other *op) bool { return other == o || other.names() }))
		if o.writes() {
			add("all, zeros for "+o.String(), instead(this, part{how: length}))
		}
	}
	for i, o := range slices.Backward(ops) {
		if o.writes() {
			for _, n := range borders(o) {
				torn := part{how: prefix, n: n}
				add(fmt.Sprintf("all, %d bytes of %s", n, o), instead(func(other *op) bool {
					return other == ops[i]
				}, torn))
				add(fmt.Sprintf("all names, %d bytes of %s", n, o), func(other *op) part {
					if other == ops[i] {
						return torn
					}
					return only(names)(other)
				})
			}
			break
		}
	}
	p.pages(add)
	for i := range Randoms {
		add(fmt.Sprintf("random %d", i), someOf(ops, seed+uint64(i)))
	}
	return out
}

// pages adds the plans in which one page that bytes were copied into differs from the others.
func (p *Point) pages(add func(name string, choose func(*op) part)) {
	ops := p.now.pending
	_, order := copies(ops)
	for _, this := range order {
		without := func(name string, choose func(same bool, n int) int) {
			add(fmt.Sprintf("%s page %d of file %d", name, this.page, this.node.n),
				eachPage(ops, func(p pageOf, n int) int { return choose(p == this, n) }))
		}
		without("all but", func(same bool, n int) int {
			if same {
				return 0
			}
			return n
		})
		without("of the copied bytes only", func(same bool, n int) int {
			if same {
				return n
			}
			return 0
		})
		without("all but the last copy into", func(same bool, n int) int {
			if same {
				return n - 1
			}
			return n
		})
	}
}

// forgotten returns the plans for a disk that lost one of the last flushes, and possibly later
// ones.
func (p *Point) forgotten(seed uint64) (out []plan) {
	for i, before := range p.past {
		ago := len(p.past) - i
		ops := slices.Clone(before.pending)
		for _, o := range p.recent {
			if o.seq > before.seq {
				ops = append(ops, o)
			}
		}
		after := p.now
		if i+1 < len(p.past) {
			after = p.past[i+1]
		}
		waiting := map[*op]bool{}
		for _, o := range after.pending {
			waiting[o] = true
		}
		flushed := func(o *op) bool { return o.seq <= before.seq && !waiting[o] }
		add := func(name string, choose func(*op) part) {
			out = append(out, plan{name: fmt.Sprintf("%s; flush %d before the last was forgotten", name, ago-1),
				base: before, ops: ops, choose: choose, forgot: true})
		}
		add("nothing since", keepNone)
		add("all else", except(flushed))
		for k := range Randoms {
			add(fmt.Sprintf("random %d", k), someOf(ops, seed+uint64(k)))
		}
	}
	return out
}

// maxTears is the number of sector borders at which a write is torn.
const maxTears = 8

// borders returns the lengths of the prefixes of a write that end at a sector border; for a long
// write only some, including the first and the last.
func borders(o *op) (out []int) {
	for at := (o.off/sector + 1) * sector; at < o.off+int64(len(o.data)); at += sector {
		out = append(out, int(at-o.off))
	}
	for len(out) > maxTears {
		out = slices.Delete(out, len(out)/2, len(out)/2+max(1, (len(out)-maxTears)/2))
	}
	return out
}

func only(these func(*op) bool) func(*op) part {
	return func(o *op) part {
		if these(o) {
			return part{}
		}
		return part{how: none}
	}
}

func except(these func(*op) bool) func(*op) part { return instead(these, part{how: none}) }

func instead(these func(*op) bool, c part) func(*op) part {
	return func(o *op) part {
		if these(o) {
			return c
		}
		return part{}
	}
}
