import java.io.BufferedReader;
import java.io.FileReader;
import java.math.BigDecimal;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.zip.CRC32C;
import org.apache.carbondata.core.constants.CarbonCommonConstants;
import org.apache.carbondata.core.datastore.row.CarbonRow;
import org.apache.carbondata.core.metadata.datatype.DataTypes;
import org.apache.carbondata.core.metadata.datatype.Field;
import org.apache.carbondata.core.scan.expression.ColumnExpression;
import org.apache.carbondata.core.scan.expression.Expression;
import org.apache.carbondata.core.scan.expression.LiteralExpression;
import org.apache.carbondata.core.scan.expression.conditional.LessThanEqualToExpression;
import org.apache.carbondata.core.util.CarbonProperties;
import org.apache.carbondata.sdk.file.CarbonReader;
import org.apache.carbondata.sdk.file.CarbonReaderBuilder;
import org.apache.carbondata.sdk.file.CarbonWriter;
import org.apache.carbondata.sdk.file.Schema;
import org.apache.carbondata.store.CarbonRowReadSupport;

/**
 * Reads and writes lineitem with CarbonData's own SDK, and measures the time.
 */
final class Client implements Requests.Client {
  /** Columns of lineitem in the order of the text file; of the others, the types follow. */
  private static final String[] COLUMNS = {"l_orderkey", "l_partkey", "l_suppkey", "l_linenumber", "l_quantity", "l_extendedprice", "l_discount",
    "l_tax", "l_returnflag", "l_linestatus", "l_shipdate", "l_commitdate", "l_receiptdate", "l_shipinstruct", "l_shipmode", "l_comment"};

  private static final int SCALE = 2; // of the decimals

  private final List<String[]> rows = new ArrayList<>();
  private long sum;
  private long count;

  /** What to read. */
  private boolean vector;
  private String folder;
  private String[] columns;
  private String filterColumn;
  private long filterMost;

  public static void main(String[] args) {
    Requests.serve(() -> {
      CarbonProperties.getInstance().addProperty(CarbonCommonConstants.CARBON_DATE_FORMAT, "yyyy-MM-dd");
      return new Client();
    });
  }

  @Override
  public String answer(String[] q, BufferedReader in) throws Exception {
    switch (q[0]) {
      case "rows": // FILE of lineitem as text, to be written later; answered by the number of rows
        return load(q[1]);
      case "write": // FOLDER; answered by the nanoseconds
        return write(q[1]);
      case "open": // vector or row, FOLDER, COLUMNS with commas, "-" for all, and COLUMN MOST for a filter "column <= most"
        vector = q[1].equals("vector");
        folder = q[2];
        columns = q[3].equals("-") ? COLUMNS : q[3].split(",");
        filterColumn = q.length > 4 ? q[4] : null;
        filterMost = q.length > 4 ? Long.parseLong(q[5]) : 0;
        return "";
      case "check": // answered by the number of rows and the CRC32C of all values
        return check();
      case "scan": // PASSES at least, MILLISECONDS at least; answered by the passes, the nanoseconds, and the rows of one pass
        return scan(Long.parseLong(q[1]), Long.parseLong(q[2]));
      default:
        throw new IllegalArgumentException("unknown request " + q[0]);
    }
  }

  private String load(String file) throws Exception {
    Map<String, String> words = new HashMap<>(); // values that occur often
    try (BufferedReader in = new BufferedReader(new FileReader(file, StandardCharsets.UTF_8), 1 << 20)) {
      for (String line; (line = in.readLine()) != null; ) {
        String[] row = line.split("\\|", -1);
        for (int i = 0; i < row.length - 1; i++) { // not the comment
          String known = words.putIfAbsent(row[i], row[i]);
          row[i] = known == null ? row[i] : known;
        }
        rows.add(row);
      }
    }
    return Integer.toString(rows.size());
  }

  /** The types are those of the columns of lineitem in a table. The other settings are the SDK's defaults. */
  private static Schema schema() {
    Field[] fields = new Field[COLUMNS.length];
    for (int i = 0; i < fields.length; i++) {
      switch (COLUMNS[i]) {
        case "l_orderkey":
        case "l_partkey":
        case "l_suppkey":
          fields[i] = new Field(COLUMNS[i], DataTypes.LONG);
          break;
        case "l_linenumber":
          fields[i] = new Field(COLUMNS[i], DataTypes.INT);
          break;
        case "l_quantity":
        case "l_extendedprice":
        case "l_discount":
        case "l_tax":
          fields[i] = new Field(COLUMNS[i], DataTypes.createDecimalType(15, SCALE));
          break;
        case "l_shipdate":
        case "l_commitdate":
        case "l_receiptdate":
          fields[i] = new Field(COLUMNS[i], DataTypes.DATE);
          break;
        default:
          fields[i] = new Field(COLUMNS[i], DataTypes.STRING);
      }
    }
    return new Schema(fields);
  }

  private String write(String to) throws Exception {
    long begin = System.nanoTime();
    CarbonWriter w = CarbonWriter.builder().outputPath(to).withCsvInput(schema()).writtenBy("oribi-bench").build();
    for (String[] row : rows) {
      w.write(row);
    }
    w.close();
    return Long.toString(System.nanoTime() - begin);
  }

  /** What is done with the values of a row. */
  private interface Use {
    void row(Object[] values);
  }

  private void each(Use use) throws Exception {
    CarbonReaderBuilder b = CarbonReader.builder(folder).projection(columns);
    if (filterColumn != null) {
      Expression most = new LiteralExpression(filterMost, DataTypes.LONG);
      b.filter(new LessThanEqualToExpression(new ColumnExpression(filterColumn, DataTypes.LONG), most));
    }
    if (!vector) {
      b.withRowRecordReader().withReadSupport(CarbonRowReadSupport.class); // which does not make text of dates
    }
    CarbonReader<Object> r = b.build();
    count = sum = 0;
    while (r.hasNext()) {
      Object row = r.readNextRow();
      use.row(vector ? (Object[]) row : ((CarbonRow) row).getData());
      count++;
    }
    r.close();
  }

  private String check() throws Exception {
    CRC32C crc = new CRC32C();
    ByteBuffer number = ByteBuffer.allocate(8);
    each(values -> {
      for (int i = 0; i < values.length; i++) {
        Object v = values[i];
        if (v instanceof String && columns[i].endsWith("date")) {
          v = LocalDate.parse((String) v).toEpochDay();
        }
        byte[] text = v instanceof String ? ((String) v).getBytes(StandardCharsets.UTF_8) : null;
        if (text != null) {
          number.putLong(0, text.length);
        } else if (v instanceof BigDecimal) {
          number.putLong(0, ((BigDecimal) v).setScale(SCALE).unscaledValue().longValueExact());
        } else {
          number.putLong(0, ((Number) v).longValue());
        }
        crc.update(number.array(), 0, 8);
        if (text != null) {
          crc.update(text, 0, text.length);
        }
      }
    });
    return count + " " + crc.getValue();
  }

  /** Adds up what a caller would use: each value is read. */
  private void add(Object[] values) {
    for (Object v : values) {
      if (v instanceof String) {
        String s = (String) v;
        sum += s.length() + s.charAt(s.length() - 1);
      } else if (v instanceof BigDecimal) {
        sum += ((BigDecimal) v).unscaledValue().longValue();
      } else {
        sum += ((Number) v).longValue();
      }
    }
  }

  private String scan(long least, long millis) throws Exception {
    long passes = 0;
    long begin = System.nanoTime();
    long last = 0;
    for (; passes < least || System.nanoTime() - begin < millis * 1_000_000; passes++) {
      each(this::add);
      if (passes > 0 && sum != last) {
        throw new IllegalStateException("the sum is " + sum + ", before " + last);
      }
      last = sum;
    }
    return passes + " " + (System.nanoTime() - begin) + " " + count;
  }
}
