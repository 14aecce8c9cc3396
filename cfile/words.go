package cfile

import (
	"slices"

	"github.com/oribi-db/oribi/batch"
)

// HasDictionary reports whether the file has a dictionary for its cells.
func (w *Writer) HasDictionary() bool { return w.words != nil && !w.o.NoWords }

// VainDictionary reports whether the file, which is finished, has a dictionary that was not worth
// its work: it has many words, which occur less than twice on average. A small file is no evidence
// of that, unless its dictionary is full.
func (w *Writer) VainDictionary() bool {
	return w.HasDictionary() && w.words.Words() >= vainWords && w.coded < 2*int64(w.words.Words()) &&
		(w.coded >= vainValues || !w.words.Coded())
}

// Words returns a copy of the dictionary; nil if it has no words, more than most, or more bytes than
// a limit or an eighth of BlockBytes, as every full dictionary has.
func (w *Writer) Words(most, bytes int) *batch.Dictionary {
	if w.words == nil || w.words.Words() == 0 || w.words.Words() > most {
		return nil
	}
	bytes = min(bytes, w.o.BlockBytes/8)
	d := new(batch.Dictionary)
	for i := range w.words.Words() {
		word := w.words.Word(i)
		if bytes -= len(word); bytes < 0 {
			return nil
		}
		d.Words = append(d.Words, slices.Clone(word))
	}
	return d
}

const (
	vainWords  = 1000    // least number of words of a dictionary that is not worth its work
	vainValues = 1 << 16 // values in codes that show it
)
