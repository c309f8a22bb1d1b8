"""Files in and out: tables, pairs, models that hold data and nothing else, ONNX."""
