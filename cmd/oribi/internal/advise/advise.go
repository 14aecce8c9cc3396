// Package advise measures the size and speed of a column in each encoding with each codec.
//
// Cells of the file are read into memory: all of them or, for a large file, windows spread evenly
// over it. The engine's own writer and reader encode and decode them in memory with every encoding
// that their type allows and every codec. Sizes are therefore sizes of whole files, and speeds do
// not include the disk. A speed is the fastest of several runs; it means little on a busy machine.
package advise

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/oribi-db/oribi/batch"
	"github.com/oribi-db/oribi/block"
	"github.com/oribi-db/oribi/cfile"
	"github.com/oribi-db/oribi/schema"
)

// Limits of a measurement.
const (
	sampleBytes = 16 << 20              // of cells
	runTime     = 30 * time.Millisecond // of all runs of one measurement; there are at least two
	mostRuns    = 20
)

// Trial is the result of one encoding with one codec.
type Trial struct {
	Encoding    schema.Encoding
	Compression schema.Compression
	Current     bool  // the file uses this encoding and codec now
	Bytes       int64 // of the file
	// Advice is the compression with which the engine would store the column in this form at rest,
	// if that takes less space than now: LZ4HC or Dense; DefaultCompression otherwise. Saves is the
	// share of the file that it saves.
	Advice schema.Compression
	Saves  float64
	// EncodeRate and DecodeRate are bytes of cells per second; one run has Sample.Bytes.
	EncodeRate, DecodeRate float64
}

// Sample is the cells used for trials.
type Sample struct {
	Rows    int64
	Bytes   int64 // of the cells, without NULLs and lengths
	vectors []*batch.Vector
}

// Take reads a sample of a file.
func Take(ctx context.Context, r *cfile.Reader) (*Sample, error) {
	s, c := new(Sample), r.NewColumnReader()
	rows := r.Rows()
	const window = batch.WindowRows
	gap := int64(0) // rows between two windows
	for row := int64(0); row < rows && s.Bytes < sampleBytes; row += gap {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		v := &batch.Vector{Type: r.Info().Type}
		n, err := c.ReadVector(batch.Ordinal(row), window, v)
		if err != nil {
			return nil, err
		}
		s.add(v)
		if row == 0 {
			// As many windows of the first one's size fit in the sample.
			wanted := max(1, sampleBytes/max(1, s.Bytes))
			gap = max(0, (rows/wanted)-window)
		}
		row += int64(n)
	}
	return s, nil
}

// add copies cells of v, which may be in array form, until the sample is full. Without a copy, byte
// strings would alias whole cblocks.
func (s *Sample) add(v *batch.Vector) {
	kept := &batch.Vector{Type: v.Type}
	if v.Elements == nil {
		kept.Reset(0)
	} else {
		kept.ResetArrays(0)
	}
	for i := 0; i < v.Len && s.Bytes < sampleBytes; i++ {
		switch {
		case v.Elements == nil:
			kept.AppendCell(s.copied(v.Cell(i)))
		case v.IsNull(i):
			kept.AppendNullArray()
		default:
			from, to := v.Array(i)
			elements := make([][]byte, 0, to-from)
			for k := from; k < to; k++ {
				elements = append(elements, s.copied(v.Elements.Cell(k)))
			}
			kept.AppendArray(elements)
		}
	}
	s.vectors = append(s.vectors, kept)
	s.Rows += int64(kept.Len)
}

// copied counts a cell and returns a copy; nil stays nil.
func (s *Sample) copied(cell []byte) []byte {
	if cell == nil {
		return nil
	}
	s.Bytes += int64(len(cell))
	return append(make([]byte, 0, len(cell)), cell...)
}

var (
	encodings = [...]schema.Encoding{schema.Plain, schema.RLE, schema.Bitshuffle, schema.Dictionary, schema.Prefix}
	codecs    = [...]schema.Compression{schema.NoCompression, schema.LZ4, schema.LZ4HC, schema.Snappy, schema.Zlib}
)

// Trials tries every encoding and codec for a column of info's type, and sorts the results by file
// size, smallest first.
func (s *Sample) Trials(ctx context.Context, info cfile.Info) ([]Trial, error) {
	var all []Trial
	for _, e := range encodings {
		for _, c := range codecs {
			if !e.Allowed(info.Type) {
				continue
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			t := Trial{Encoding: e, Compression: c, Current: e == info.Encoding && c == info.Compression}
			if err := s.try(&t, info); err != nil {
				return nil, err
			}
			all = append(all, t)
		}
	}
	slices.SortStableFunc(all, func(a, b Trial) int { return cmp.Compare(a.Bytes, b.Bytes) })
	recommend(all, info)
	return all, nil
}

// leastSaving is the share of a file that advice saves at least, as the engine demands too.
const leastSaving = 0.03

// recommend fills in the advice of trials, which are sorted by size: LZ4 HC in the present
// encoding, and zlib in the smallest one.
func recommend(all []Trial, info cfile.Info) {
	now := slices.IndexFunc(all, func(t Trial) bool { return t.Current })
	if now < 0 {
		return
	}
	for _, k := range [...]schema.Compression{schema.LZ4HC, schema.Dense} {
		best := slices.IndexFunc(all, func(t Trial) bool {
			return k == schema.LZ4HC && t.Compression == k && t.Encoding == info.Encoding ||
				k == schema.Dense && t.Compression == schema.Zlib
		})
		if saves := 1 - float64(all[best].Bytes)/float64(all[now].Bytes); saves >= leastSaving {
			all[best].Advice, all[best].Saves = k, saves
		}
	}
}

// try runs one trial.
func (s *Sample) try(t *Trial, info cfile.Info) error {
	var file block.Memory
	o := cfile.WriterOptions{Type: info.Type, Encoding: t.Encoding, Compression: t.Compression, Nullable: info.Nullable,
		Array: info.Array, NoChecksums: !info.Checksums, PositionalIndex: true}
	var err error
	if t.EncodeRate, err = s.rate(func() error {
		file.Bytes = file.Bytes[:0]
		return s.write(&file, o)
	}); err != nil {
		return err
	}
	t.Bytes = file.Size()
	t.DecodeRate, err = s.rate(func() error { return read(&file, info.Type) })
	return err
}

// rate calls a function several times and returns the bytes of cells per second of the fastest
// call.
func (s *Sample) rate(run func() error) (float64, error) {
	var fastest, total time.Duration
	for i := 0; i < 2 || i < mostRuns && total < runTime; i++ {
		start := time.Now()
		if err := run(); err != nil {
			return 0, err
		}
		took := max(time.Since(start), 1)
		if total += took; i == 0 || took < fastest {
			fastest = took
		}
	}
	return float64(s.Bytes) / fastest.Seconds(), nil
}

func (s *Sample) write(file *block.Memory, o cfile.WriterOptions) error {
	w, err := cfile.NewWriter(file, o)
	if err != nil {
		return err
	}
	for _, v := range s.vectors {
		if err := w.Append(v); err != nil {
			return err
		}
	}
	return w.Finish()
}

// read decodes a whole file.
func read(file *block.Memory, t schema.Type) error {
	r, err := cfile.Open(file, cfile.ReaderOptions{Arrays: true})
	if err != nil {
		return err
	}
	c, v := r.NewColumnReader(), &batch.Vector{Type: t}
	for row := int64(0); row < r.Rows(); row += int64(v.Len) {
		if _, err := c.ReadVector(batch.Ordinal(row), batch.WindowRows, v); err != nil {
			return err
		}
	}
	return nil
}
