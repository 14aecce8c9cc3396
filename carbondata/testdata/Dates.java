import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

import org.apache.carbondata.core.constants.CarbonCommonConstants;
import org.apache.carbondata.core.metadata.datatype.DataTypes;
import org.apache.carbondata.core.metadata.datatype.Field;
import org.apache.carbondata.core.util.CarbonProperties;
import org.apache.carbondata.sdk.file.CarbonReader;
import org.apache.carbondata.sdk.file.CarbonWriter;
import org.apache.carbondata.sdk.file.Schema;

/**
 * Writes and prints dates and times with CarbonData's SDK, as text. "write DIR" writes a folder with the lines of stdin: a date, a tab, a time; what the SDK refuses
 * becomes null. "print DIR" prints the rows of a folder with the columns id, d, and t: the latter two as the SDK's reader returns them, with a tab between.
 */
final class Dates {
  public static void main(String[] args) throws Exception {
    CarbonProperties properties = CarbonProperties.getInstance();
    properties.addProperty(CarbonCommonConstants.CARBON_DATE_FORMAT, "yyyy-MM-dd");
    properties.addProperty(CarbonCommonConstants.CARBON_TIMESTAMP_FORMAT, "yyyy-MM-dd HH:mm:ss.SSS");
    if (args[0].equals("write")) {
      write(args[1]);
    } else {
      print(args[1]);
    }
    System.out.flush();
    Runtime.getRuntime().halt(0);
  }

  private static void write(String dir) throws Exception {
    Field[] fields = {new Field("id", DataTypes.INT), new Field("d", DataTypes.DATE), new Field("t", DataTypes.TIMESTAMP)};
    CarbonWriter w = CarbonWriter.builder().outputPath(dir).withCsvInput(new Schema(fields)).writtenBy("test").withLoadOption("bad_records_action", "force").build();
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    int id = 0;
    for (String line; (line = in.readLine()) != null; id++) {
      String[] values = line.split("\t");
      w.write(new String[] {Integer.toString(id), values[0], values[1]});
    }
    w.close();
  }

  private static void print(String dir) throws Exception {
    CarbonReader<Object> r = CarbonReader.builder(dir, "_temp").projection(new String[] {"id", "d", "t"}).build();
    while (r.hasNext()) {
      Object[] row = (Object[]) r.readNextRow();
      System.out.println("row\t" + row[0] + "\t" + row[1] + "\t" + row[2]);
    }
    r.close();
  }
}
