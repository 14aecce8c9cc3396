package batch

import (
	"sync"
	"sync/atomic"
)

// wordCache caches a predicate's results for the words of recently used dictionaries.
//
// The goroutines of a parallel scan use different dictionaries at the same time; with one slot they
// would evict each other's results. Slots are replaced atomically, without a lock; two goroutines
// that evaluate the same dictionary at the same time duplicate the work, with the same result.
type wordCache struct {
	slots [8]atomic.Pointer[wordSet]
	next  atomic.Uint32 // slot to be overwritten
}

// wordSet has one bit for each word of dict, 1 if the word passes. Immutable.
type wordSet struct {
	dict  *Dictionary
	match Bitmap
}

func (c *wordCache) find(d *Dictionary) Bitmap {
	if c == nil {
		return nil
	}
	for i := range c.slots {
		if s := c.slots[i].Load(); s != nil && s.dict == d {
			return s.match
		}
	}
	return nil
}

func (c *wordCache) put(d *Dictionary, match Bitmap) {
	if c == nil {
		return
	}
	i := c.next.Add(1) % uint32(len(c.slots))
	c.slots[i].Store(&wordSet{dict: d, match: match})
}

// EvalWords returns one bit for each word of d, 1 if the word passes; for IsNull none does. A
// prepared predicate caches the result for recently used dictionaries. The caller must not change
// it.
func (p *Predicate) EvalWords(d *Dictionary) Bitmap {
	if m := p.words.find(d); m != nil {
		return m
	}
	m := MakeBitmap(len(d.Words))
	for i, w := range d.Words {
		if p.evalWord(w) {
			m.Set(i)
		}
	}
	p.words.put(d, m)
	return m
}

// evalWord is EvalCell for a word, which is never NULL.
func (p *Predicate) evalWord(w []byte) bool {
	if w == nil {
		w = emptyCell
	}
	return p.EvalCell(w)
}

// rememberedWords is the maximum ratio of words in a dictionary to cells in a vector at which all
// words are tested, provided that the result is cached. The next windows of a scan share the
// dictionary, and eight of them would test as many cells one by one.
const rememberedWords = 8

// WorthWords reports whether n cells justify testing all words of d rather than those that occur.
func (p *Predicate) WorthWords(d *Dictionary, n int) bool {
	if p.words == nil {
		return n >= len(d.Words)
	}
	return n >= len(d.Words)/rememberedWords || p.words.find(d) != nil
}

// evalCodes tests a vector in dictionary form: each word once, then the codes.
func (p *Predicate) evalCodes(v *Vector, sel Bitmap) {
	if p.WorthWords(v.Dict, v.Len) {
		FilterCodes(v.Codes, p.EvalWords(v.Dict), sel, 0)
		return
	}
	p.evalOccurring(v, sel)
}

// FilterCodes clears the bits at+i of sel for which bit codes[i] of match is 0. All codes are below
// the number of bits of match, and at+len(codes) within sel.
func FilterCodes(codes []uint32, match Bitmap, sel Bitmap, at int) {
	// The partial words of sel at the start and at the end are processed bit by bit.
	for ; len(codes) > 0 && at%lane != 0; at++ {
		if !match.Get(int(codes[0])) {
			sel.Clear(at)
		}
		codes = codes[1:]
	}
	for ; len(codes) >= lane; at += lane {
		if w := &sel[at/lane]; *w != 0 {
			*w &= codeMask((*[lane]uint32)(codes), match)
		}
		codes = codes[lane:]
	}
	for i, c := range codes {
		if !match.Get(int(c)) {
			sel.Clear(at + i)
		}
	}
}

// codeMask returns the bits of match that 64 codes refer to.
func codeMask(codes *[lane]uint32, match Bitmap) (m uint64) {
	for i, c := range codes {
		m |= match[c>>6] >> (c & 63) & 1 << i
	}
	return m
}

// occurring is the scratch memory of evalOccurring: which words were tested, and which passed.
type occurring struct{ tested, match Bitmap }

var occurringPool = sync.Pool{New: func() any { return new(occurring) }}

// evalOccurring tests each word that a selected cell of v refers to once.
func (p *Predicate) evalOccurring(v *Vector, sel Bitmap) {
	o := occurringPool.Get().(*occurring)
	defer occurringPool.Put(o)
	o.tested = o.tested.Resize(len(v.Dict.Words))
	o.match = o.match.Resize(len(v.Dict.Words))
	for i := sel.Next(0); i >= 0 && i < v.Len; i = sel.Next(i + 1) {
		c := int(v.Codes[i])
		if !o.tested.Get(c) {
			o.tested.Set(c)
			if p.evalWord(v.Dict.Words[c]) {
				o.match.Set(c)
			}
		}
		if !o.match.Get(c) {
			sel.Clear(i)
		}
	}
}
