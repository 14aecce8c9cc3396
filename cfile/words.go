package cfile

import (
	"bytes"

	"github.com/oribi-db/oribi/batch"
)

// HasDictionary reports whether the file has a dictionary for its cells.
func (w *Writer) HasDictionary() bool { return w.words != nil && !w.o.NoWords }

// VainDictionary reports whether the file has a dictionary that was not worth its work: it has many
// words, which occur less than twice on average.
func (w *Writer) VainDictionary() bool {
	return w.HasDictionary() && w.words.Words() >= vainWords && w.coded < 2*int64(w.words.Words())
}

// Words returns a copy of the dictionary, nil if it has no words, or more than most.
func (w *Writer) Words(most int) *batch.Dictionary {
	if w.words == nil || w.words.Words() == 0 || w.words.Words() > most {
		return nil
	}
	d := new(batch.Dictionary)
	for i := range w.words.Words() {
		d.Words = append(d.Words, bytes.Clone(w.words.Word(i)))
	}
	return d
}

// vainWords is the least number of words of a dictionary that is not worth its work.
const vainWords = 1000
