package peer

// Nested are the drivers that live in programs of their own, since what they need is large: DuckDB
// a C library of 60 MB, arrow-go minutes of compiling, Kudu its servers and Java. Those programs
// have them whole.
func Nested() []Driver {
	return []Driver{
		{Name: "duckdb-1", Module: "duckdb", Can: Load | Sorted | Write | Point | Query},
		{Name: "duckdb-2", Module: "duckdb", Can: Load | Sorted | Query},
		{Name: "duckdb-arrow", Module: "duckdb", Can: Load | Sorted},
		{Name: "arrow-go", Module: "arrow", Can: Sorted | Query},
		// It could load in any order too, as it loads in that of the keys, which would take a
		// minute of a run more.
		{Name: "kudu", Module: "kudu", Can: Sorted | Write | Point | Query, Remote: true},
	}
}

// Drivers are all drivers; own take the place of the nested ones that they are named as.
func Drivers(own ...Driver) []Driver {
	all := append([]Driver{Oribi, OribiSmall, Pebble, PebbleVersions, Bbolt, Badger, SQLite, Parquet}, Nested()...)
	for i := range all {
		for _, o := range own {
			if o.Name == all[i].Name {
				o.Module, o.Can, o.Remote = all[i].Module, all[i].Can, all[i].Remote
				all[i] = o
			}
		}
	}
	return all
}
