// Package bloom keeps filters over the encoded keys of a rowset, in a file that Kudu reads.
//
// A filter answers "this key is not here" for certain, and "it may be here" with a small chance of
// being wrong. A bloom file holds one filter for every 1,710 keys or so (4 KiB each at the usual
// rate of one wrong answer in ten thousand), under a value index from the first key of each: one
// question reads one filter. Keys are whole encoded keys, never prefixes.
//
//	w, err := bloom.NewWriter(sink, bloom.Options{})
//	for _, key := range keys { // ascending
//		err = w.Add(key)
//	}
//	err = w.Finish()
//
//	r, err := bloom.Open(src, cfile.ReaderOptions{Cache: c})
//	p := bloom.MakeProbe(key) // hashed once, asked of many files
//	maybe, err := r.MayContain(p)
//
// A Writer belongs to one goroutine; a Reader serves any number. A Probe aliases the key it was
// made of and holds as long as that does.
//
// The file is a CFile (package cfile) of BINARY, PLAIN, not compressed, with a value index alone,
// whose cblocks are filters in the layout of filter.go and whose number of values is 0. Kudu keeps
// the last four filters of each thread at hand; here the cache of cblocks and the flat index of
// cfile.Reader do that for all, at the cost of one look-up in the cache for each question.
// Source: cfile spec §9.
package bloom

import (
	"github.com/oribi-db/oribi/internal/cityhash"
	"github.com/oribi-db/oribi/internal/fault"
)

// Errors that callers may ask for with errors.Is.
var (
	// ErrCorrupt: the bytes are not those of a bloom file.
	ErrCorrupt = fault.ErrCorrupt
	// ErrUnsupported: a CFile that cannot be a bloom file, or a feature that is not known.
	ErrUnsupported = fault.ErrUnsupported
)

// Probe is a key with its hash, made once for questions to many files.
type Probe struct {
	Key  []byte // encoded key; aliased, not copied
	hash uint64
}

// Hash is the key's hash.
func (p Probe) Hash() uint64 { return p.hash }

// MakeProbe returns the Probe of an encoded key.
func MakeProbe(key []byte) Probe { return Probe{Key: key, hash: cityhash.Hash64(key)} }
