package peer

// Nested are the drivers in separate programs, because what they need is large: DuckDB a C library
// of 60 MB, arrow-go minutes of compile time, Kudu its servers and Java. The implementations are in
// those programs.
func Nested() []Driver {
	return []Driver{
		{Name: "duckdb-1", Module: "duckdb", Can: Load | Sorted | Write | Point | Query},
		{Name: "duckdb-2", Module: "duckdb", Can: Load | Sorted | Query},
		{Name: "duckdb-arrow", Module: "duckdb", Can: Load | Sorted},
		{Name: "arrow-go", Module: "arrow", Can: Sorted | Query},
		// Kudu could also load in any order, as fast as in key order, but this would add a minute
		// to each run.
		{Name: "kudu", Module: "kudu", Can: Sorted | Write | Point | Query, Remote: true},
	}
}

// Drivers returns all drivers; those in own replace the nested ones of the same name.
func Drivers(own ...Driver) []Driver {
	all := append([]Driver{Oribi, OribiSmall, OribiRows, OribiKV, OribiKVRows, Pebble, PebbleVersions, Bbolt, Badger,
		SQLite, Parquet}, Nested()...)
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
