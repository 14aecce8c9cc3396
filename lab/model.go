package lab

// Model is what the simulation knows about the bytes of files. All sizes are in bytes. A test fits it
// to runs of the engine "real".
type Model struct {
	Row      float64 // of base data per row, besides its value: key, bloom filter, key directory, row structure
	Value    float64 // stored per byte of a value
	Birth    float64 // of undos per row that was inserted within the history
	Undo     float64 // of undos per update or delete, besides the old value
	Redo     float64 // of redos per update, besides the new value
	Delete   float64 // of redos per delete
	RowSet   float64 // of base data per rowset
	UndoFile float64 // per undo file
	RedoFile float64 // per redo file
}

// fitted is the model of stores with a key of type int64 and a value of random bytes.
var fitted = Model{Row: 14, Value: 1, Birth: 2, Undo: 8, Redo: 8, Delete: 6, RowSet: 1200, UndoFile: 400, RedoFile: 400}

// base returns the size of the base data of a rowset.
func (m *Model) base(rows int64, value float64) float64 {
	return m.RowSet + float64(rows)*(m.Row+m.Value*value)
}
